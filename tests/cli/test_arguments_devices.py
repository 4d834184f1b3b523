"""--device of the commands: what runs on a device gives what it gives on the CPU, and messages without a GPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import graphc as gc
from graphc.cli import console
from tests.cli.conftest import Graphc

INPUT = ("--input", "x:f32[2,6]")
NO_GPU = pytest.mark.skipif(gc.cuda.is_available(), reason="there is a GPU")


def test_a_model_file_runs_on_a_device(net: Path, graphc: Graphc):
    plain, there = (
        json.loads(graphc("run", net, "--input", "x=random", "--json", *more).out)["outputs"][0]["values"]
        for more in ((), ("--device", "cuda-emu"))
    )
    for a, b in zip(plain, there, strict=True):
        assert a == pytest.approx(b, rel=1e-5)


def test_a_model_file_is_measured_on_a_device(net: Path, graphc: Graphc):
    done = graphc("bench", net, "--device", "cuda-emu", "--rounds", "2", "--seconds", "0.01", "--json")
    assert done.code == console.OK and json.loads(done.out)["call"]["median"] > 0
    assert graphc("bench", net, "--device", "cuda-emu", "--breakdown").code == console.USAGE


def test_the_text_for_gpus_needs_none(models: Path, graphc: Graphc):
    for more in (("--target", "sm_80"), ("--device", "cuda-emu")):
        done = graphc("ir", f"{models}:Net", *INPUT, "--stage", "cuda", *more)
        assert done.code == console.OK and "__global__" in done.out
    done = graphc("ir", f"{models}:Net", *INPUT, "--stage", "threads", "--target", "sm_90")
    assert done.code == console.OK and "threads" in done.out


def test_stages_that_a_machine_does_not_have(models: Path, graphc: Graphc):
    done = graphc("ir", f"{models}:Net", *INPUT, "--stage", "cuda")
    assert done.code == console.USAGE and "no stage 'cuda' for host" in done.err and "--target sm_90" in done.err
    done = graphc("ir", f"{models}:Net", *INPUT, "--stage", "asm", "--device", "cuda-emu")
    assert done.code == console.USAGE and "no stage 'asm' for cuda-emu" in done.err
    done = graphc("ir", f"{models}:Net", *INPUT, "--target", "avx2", "--device", "cuda-emu")
    assert done.code == console.USAGE and "one of the two" in done.err


def test_the_way_of_each_kernel_is_explained(models: Path, graphc: Graphc):
    done = graphc("explain", f"{models}:Net", *INPUT, "--device", "cuda-emu")
    assert done.code == console.OK and "\npaths:\n" in done.out and "warp per row" in done.out
    call = json.loads(graphc("explain", f"{models}:Net", *INPUT, "--target", "sm_90", "--json").out)["calls"][0]
    assert set(call["device"]) == {"path", "blocks", "threads", "shared"} and call["device"]["threads"] >= 32


def test_a_model_file_holds_no_code_for_devices(models: Path, tmp_path: Path, graphc: Graphc):
    file = tmp_path / "net.gcm"
    for more in (("--device", "cuda-emu"), ("--target", "sm_90")):
        done = graphc("compile", f"{models}:Net", *INPUT, "--native", *more, "-o", file)
        assert done.code == console.USAGE and "holds no code for" in done.err and "graphc run FILE --device" in done.err
    assert not file.exists()
    assert graphc("compile", f"{models}:Net", *INPUT, "--device", "cuda-emu", "-o", file).code == console.OK
    assert graphc("run", file, "--input", "x=zeros", "--device", "cuda-emu").code == console.OK


def test_names_that_are_no_device(net: Path, graphc: Graphc):
    done = graphc("run", net, "--input", "x=zeros", "--device", "tpu")
    assert done.code == console.USAGE and "there is no device 'tpu'" in done.err


@NO_GPU
def test_what_is_said_where_there_is_no_gpu(net: Path, models: Path, graphc: Graphc):
    for command in (
        ("run", net, "--input", "x=zeros"),
        ("bench", net),
        ("compile", f"{models}:Net", *INPUT, "-o", "n"),
    ):
        done = graphc(*command, "--device", "cuda")
        assert done.code == console.COMPILE and "error:" in done.err and "cuda-emu" in done.err
    done = graphc("ir", f"{models}:Net", *INPUT, "--stage", "cuda", "--device", "cuda")
    assert done.code == console.COMPILE and "--target sm_90" in done.err
