"""build_library: from models and files to libraries that give what Python gives, bit for bit."""

from __future__ import annotations

import subprocess
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.base.errors import ArgumentError, CompileError, TraceError
from graphc.c_library.build import build_library
from graphc.c_library.functions import VERSION
from graphc.codegen.machine.target import architecture, target_named
from graphc.compiler.ready import target_spec
from graphc.runtime.loader import host, runs_here
from tests.c_library.conftest import (
    Built,
    build_demo,
    call_alone,
    demo_inputs,
    expected,
    printed,
    run_tool,
    same,
    tool_or_skip,
)
from tests.c_library.nets import NETS
from tests.native import target_or_skip


@pytest.mark.parametrize("name", NETS)
def test_the_demo_in_c_gives_what_python_gives(name: str, built: Built, tmp_path: Path):
    library, net = built(name), NETS[name]
    program = build_demo(library, compiler=tool_or_skip("cc"))
    sizes = ["--batch=2", "--time=12"] if net.dims else []
    outputs = printed(run_tool(program, "--seed=3", "--all", *sizes))
    graphc.export(net.model(), *net.calls[0], path=tmp_path / "net.gcm", dims=net.dims)
    model = graphc.load(tmp_path / "net.gcm")
    expected = [np.asarray(a).ravel() for a in model.run(demo_inputs(library, net, 3))]
    assert [np.float32(v).tolist() for v in outputs.values()] == [a.tolist() for a in expected]


class Doubled(nn.Module):
    """Each input added to itself."""

    def forward(self, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
        return a + a, b + b, c + c, d + d, e + e, f + f


def test_elements_of_each_size_go_in_and_out(tmp_path: Path):
    integers = [np.array([3, np.iinfo(d).max // 2], d) for d in ("int16", "uint16", "uint32", "uint64")]
    inputs = [*map(graphc.tensor, integers), graphc.tensor([1.5, -2.0]).half(), graphc.tensor([1.5, -2.0]).bfloat16()]
    library = build_library(Doubled(), *inputs, path=tmp_path / "doubled.so", emit=("so", "h", "c", "py"))
    halves = np.array([1.5, -2.0], np.float16), np.array([0x3FC0, 0xC000], np.uint16)
    (outputs,) = call_alone(library, [[*integers, *halves]], tmp_path)
    expected = [*(a + a for a in integers), halves[0] + halves[0], np.array([0x4040, 0xC080], np.uint16)]
    assert same([outputs], [expected])
    text = run_tool(build_demo(library, compiler=tool_or_skip("cc")), "--seed=3")
    ones = {line.split()[-1] for line in text.splitlines()}
    assert ones <= {"0", "2", "0x0000", "0x4000"} and len(text.splitlines()) == 6


def test_the_demo_measures_calls(built: Built):
    program = build_demo(built("policy"), compiler=tool_or_skip("cc"))
    line = run_tool(program, "--bench=50").splitlines()[-1]
    assert line.startswith("run: min ") and "p50" in line and "p99.9" in line and line.endswith("50 calls")


def test_header_and_demo_are_c_plus_plus_as_well(built: Built):
    program = build_demo(built("sizes"), compiler=tool_or_skip("c++", "g++"), standard="c++11")
    assert run_tool(program, "--batch=1", "--time=1").startswith("output_0:")


@pytest.mark.parametrize("target", ["sse2", "avx2"])
def test_libraries_for_a_named_machine_give_what_python_gives_there(target: str, built: Built, tmp_path: Path):
    target_or_skip(target)
    outputs = call_alone(built("digits", target=target), NETS["digits"].calls, tmp_path)
    assert same(outputs, expected(NETS["digits"], tmp_path, target))


def test_weights_lie_in_a_file_beside(built: Built, tmp_path: Path):
    library = built("decoder", weights="beside")
    weights = library.files["weights"]
    assert weights.stat().st_size == library.weight_bytes + 64
    assert library.files["so"].stat().st_size < weights.stat().st_size + 16384
    outputs = call_alone(library, NETS["decoder"].calls, tmp_path)
    assert same(outputs, expected(NETS["decoder"], tmp_path))
    program = build_demo(library, compiler=tool_or_skip("cc"))
    assert run_tool(program, cwd=weights.parent).startswith("output:")


def test_equal_models_give_equal_files(built: Built, tmp_path: Path):
    first, net = built("policy"), NETS["policy"]
    again = build_library(net.model(), *net.calls[0], path=tmp_path / "policy.so", emit=("so", "h", "c", "py"))
    for kind, path in first.files.items():
        assert path.read_bytes() == again.files[kind].read_bytes(), kind
    other = build_library(NETS["policy"].make().eval(), *net.calls[0], path=tmp_path / "other.so")
    assert other.digest != first.digest


def test_a_library_is_made_of_a_model_file(built: Built, tmp_path: Path):
    net = NETS["lstm"]
    graphc.export(net.model(), *net.calls[0], path=tmp_path / "net.gcm")
    library = build_library(tmp_path / "net.gcm", path=tmp_path / "lstm.so", emit=("so", "py"))
    assert set(library.files) == {"so", "py"} and set(library.entries) == {"run"}
    assert same(call_alone(library, net.calls, tmp_path), expected(net, tmp_path))
    with pytest.raises(ArgumentError, match="holds a graph"):
        build_library(tmp_path / "net.gcm", *net.calls[0], path=tmp_path / "lstm.so")
    with pytest.raises(ArgumentError, match="no entry 'decode'"):
        build_library(tmp_path / "net.gcm", path=tmp_path / "lstm.so", entries=["decode"])


def test_threads_call_with_contexts_of_their_own(built: Built, tmp_path: Path):
    net = NETS["decoder"]
    target = expected(net, tmp_path)
    loader = load(built("decoder"))
    results: list[Any] = [None] * 4

    def work(number: int) -> None:
        good = True
        for _ in range(25):
            model = loader.Model()
            good &= all(np.array_equal(model.run(*call), w[0]) for call, w in zip(net.calls, target, strict=True))
        results[number] = good

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert results == [True] * 4


def load(library: Any) -> Any:
    """The loader of a library as a module of this process."""
    namespace: dict[str, Any] = {"__file__": str(library.files["py"]), "__name__": "loader"}
    exec(library.files["py"].read_text(), namespace)
    return type("Loader", (), namespace)


def test_models_that_a_library_cannot_hold_are_refused_by_name(tmp_path: Path):
    @graphc.opaque
    def measure(x: Any) -> Any:
        return x

    class Calls(nn.Module):
        def forward(self, x: Any) -> Any:
            return measure(x)

    with pytest.raises(TraceError, match="measure"):
        build_library(Calls(), graphc.rand(3), path=tmp_path / "calls.so")
    with pytest.raises(CompileError, match="cannot contain code for"):
        build_library(NETS["policy"].model(), graphc.rand(1, 17), path=tmp_path / "p.so", target="sm_90")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"emit": ("exe",)}, "unknown kind of file 'exe'"),
        ({"emit": ()}, "emit is empty"),
        ({"weights": "elsewhere"}, "inside"),
        ({"name": "int"}, "cannot have the prefix 'int'"),
        ({"name": "two words"}, "cannot have the prefix 'two words'"),
        ({"precision": "f8"}, "f8"),
    ],
)
def test_wrong_choices_are_refused(options: dict[str, Any], message: str, tmp_path: Path):
    with pytest.raises(ArgumentError, match=message):
        build_library(NETS["policy"].model(), graphc.rand(1, 17), path=tmp_path / "p.so", **options)


def test_a_processor_without_the_instructions_is_told_from_the_others(built: Built):
    emulator = tool_or_skip("qemu-x86_64")
    program = build_demo(built("policy", target="avx2"), compiler=tool_or_skip("cc"))
    refused = subprocess.run([emulator, "-cpu", "Nehalem", program], capture_output=True, text=True)
    assert refused.returncode == 1
    assert refused.stderr == "init: this processor lacks instructions that the library was built for\n"
    assert run_tool(emulator, "-cpu", "max", program).startswith("output:")


def test_an_arm_processor_without_the_instructions_is_refused(built: Built):
    compiler, emulator = tool_or_skip("aarch64-linux-gnu-gcc"), tool_or_skip("qemu-aarch64")
    program = build_demo(built("policy", target="neon-dotprod"), compiler=compiler)
    command = [emulator, "-L", "/usr/aarch64-linux-gnu", "-cpu"]
    refused = subprocess.run([*command, "cortex-a72", program], capture_output=True, text=True)
    assert refused.returncode == 1 and "lacks instructions" in refused.stderr
    assert run_tool(*command, "cortex-a76", program).startswith("output:")


@pytest.mark.parametrize("name", ["policy", "decoder", "sizes"])
def test_init_chooses_the_code_for_the_processor(name: str, built: Built):
    emulator, compiler = tool_or_skip("qemu-x86_64"), tool_or_skip("cc")
    program = build_demo(built(name, target="avx512,avx2,sse2"), compiler=compiler)
    found = {}
    for target, processor in (("avx2", "Haswell"), ("sse2", "Nehalem")):
        alone = build_demo(built(name, target=target), compiler=compiler)
        found[target] = run_tool(emulator, "-cpu", processor, program)
        assert found[target] == run_tool(emulator, "-cpu", processor, alone) != ""
    assert found["avx2"] != found["sse2"], "sums in another order give other last digits"


def test_init_chooses_the_code_for_the_arm_processor(built: Built):
    compiler, emulator = tool_or_skip("aarch64-linux-gnu-gcc"), tool_or_skip("qemu-aarch64")
    command = [emulator, "-L", "/usr/aarch64-linux-gnu", "-cpu"]
    program = build_demo(built("digits", target="neon-i8mm,neon-dotprod,neon"), compiler=compiler)
    texts = {run_tool(*command, processor, program) for processor in ("cortex-a72", "cortex-a76", "max")}
    assert len(texts) == 1 and texts.pop().startswith("output:")


def test_the_version_is_that_of_the_first_processor_that_fits(built: Built):
    levels = ("avx512", "avx2", "sse2")
    here = host().triple
    fits = [not runs_here(replace(target_spec(target_named(name)), triple=here)) for name in levels]
    if architecture(target_named("sse2")) != here.partition("-")[0]:
        pytest.skip("the processor is not x86-64")
    loader = load(built("policy", target=",".join(levels)))
    assert int(loader.Model().context[VERSION : VERSION + 8].view(np.int64)[0]) == fits.index(True)


def test_a_list_of_processors_gives_the_proof_of_all(built: Built):
    levels = ("avx512", "avx2", "sse2")
    target_or_skip("sse2")
    reports = [built("policy", target=t, realtime=True).realtime["run"] for t in (",".join(levels), *levels)]
    steps = [report.instructions or 0 for report in reports]
    assert steps[0] > max(steps[1:]) > 0
    assert reports[0].stack_bytes >= max(report.stack_bytes for report in reports[1:])


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("avx2,neon", "no library serves the different machines avx2,neon"),
        ("sse2,avx2", "one before the last cannot be detected"),
        ("cortex-m7,cortex-m4", "cannot be detected|different machines"),
    ],
)
def test_lists_of_processors_that_make_no_sense_are_refused(target: str, message: str, tmp_path: Path):
    with pytest.raises(ArgumentError, match=message):
        build_library(NETS["policy"].model(), graphc.rand(1, 17), path=tmp_path / "p.a", target=target)


CROSS = {
    "neon": ("aarch64-linux-gnu-gcc", "qemu-aarch64", "/usr/aarch64-linux-gnu"),
    "rv64gc": ("riscv64-linux-gnu-gcc", "qemu-riscv64", "/usr/riscv64-linux-gnu"),
}


@pytest.mark.parametrize("name", ["policy", "digits", "sizes", "decoder"])
@pytest.mark.parametrize("target", CROSS)
def test_libraries_for_other_processors_run_under_emulation(target: str, name: str, built: Built):
    compiler, emulator, root = (tool_or_skip(CROSS[target][0]), tool_or_skip(CROSS[target][1]), CROSS[target][2])
    net = NETS[name]
    library = built(name, target=target)
    program = build_demo(library, compiler=compiler)
    sizes = ["--batch=2", "--time=12"] if net.dims else []
    outputs = printed(run_tool(emulator, "-L", root, program, "--all", *sizes))
    expected = printed(run_tool(build_demo(built(name), compiler=tool_or_skip("cc")), "--all", *sizes))
    for output, values in expected.items():
        np.testing.assert_allclose(outputs[output], values, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["policy", "digits", "lstm", "decoder"])
@pytest.mark.parametrize("target", ["sse2", "avx2", *CROSS])
def test_in_strict_order_all_processors_give_the_same_bits(target: str, name: str, built: Built):
    compiler, emulator, root = CROSS.get(target, ("cc", "", ""))
    cross = [tool_or_skip(emulator), "-L", root] if emulator else []
    if not emulator:
        target_or_skip(target)
    library = built(name, target=target, strict_order=True)
    outputs = run_tool(*cross, build_demo(library, compiler=tool_or_skip(compiler)), "--all")
    assert outputs == run_tool(build_demo(built(name, strict_order=True), compiler=tool_or_skip("cc")), "--all")
