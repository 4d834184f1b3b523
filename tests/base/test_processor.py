"""Detected features: tiles need a permission, GRAPHC_MAX_ISA hides what lies beyond a level."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from graphc.base import processor
from graphc.base.errors import ArgumentError
from graphc.codegen.machine.target import host_target
from graphc.runtime.loader import host


@pytest.mark.parametrize(
    ("allowed", "found"), [(True, ("amx-bf16", "amx-tile", "avx2")), (False, ("avx2",))], ids=["given", "refused"]
)
def test_tiles_need_a_permission(monkeypatch: pytest.MonkeyPatch, allowed: bool, found: tuple[str, ...]):
    monkeypatch.setattr(processor, "tiles_allowed", lambda: allowed)
    features = {"avx2": True, "amx-tile": True, "amx-bf16": True, "amx-int8": False}
    assert processor.usable(features) == found


def test_nothing_is_asked_for_where_there_are_no_tiles(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(processor, "tiles_allowed", lambda: pytest.fail("asked"))
    assert processor.usable({"sse2": True, "avx2": False}) == ("sse2",)


def test_other_systems_give_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(processor.sys, "platform", "darwin")
    assert not processor.tiles_allowed.__wrapped__()


@pytest.mark.parametrize(
    ("words", "found"),
    [({}, ()), ({16: 1 << 20}, ("dotprod",)), ({16: 1 << 20, 26: 1 << 13}, ("dotprod", "i8mm"))],
)
def test_linux_reports_products_of_bytes_on_arm(
    monkeypatch: pytest.MonkeyPatch, words: dict[int, int], found: tuple[str, ...]
):
    def getauxval(entry: int) -> int:
        return words.get(entry, 0)

    monkeypatch.setattr(processor.platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(processor.sys, "platform", "linux")
    monkeypatch.setattr(processor.ctypes, "CDLL", lambda name: SimpleNamespace(getauxval=getauxval))
    monkeypatch.setattr(processor, "byte_features", processor.byte_features.__wrapped__)
    assert processor.byte_features() == found
    assert processor.usable({"neon": True, "crc": False}) == (*found, "neon")


def test_macos_reports_products_of_bytes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(processor.platform, "machine", lambda: "arm64")
    monkeypatch.setattr(processor.sys, "platform", "darwin")
    monkeypatch.setattr(processor, "_sysctl", lambda name: name == b"hw.optional.arm.FEAT_DotProd")
    assert processor.byte_features.__wrapped__() == ("dotprod",)


def test_compiler_and_loader_see_the_same_features():
    assert set(host_target().features.replace("+", "").split(",")) - {""} == set(host().features)


ZEN5 = {
    name: True for name in (*processor.LEVELS["avx512"].features, "avx512bf16", "avx512vnni", "sse", "sse2", "vaes")
}


@pytest.mark.parametrize(
    ("limit", "cpu", "widest"),
    [("sse2", "x86-64", "sse2"), ("avx2", "x86-64-v3", "avx2"), ("avx512", "x86-64-v4", "avx512f")],
)
def test_a_limit_hides_all_features_beyond_its_level(
    monkeypatch: pytest.MonkeyPatch, limit: str, cpu: str, widest: str
):
    monkeypatch.setenv("GRAPHC_MAX_ISA", limit)
    monkeypatch.setattr(processor.platform, "machine", lambda: "x86_64")
    name, features = processor.detected("znver5", ZEN5)
    level = processor.LEVELS[limit].features
    assert name == cpu and widest in features and set(features) == {*level, "sse", "sse2"}


def test_without_a_limit_all_features_are_shown(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("GRAPHC_MAX_ISA", raising=False)
    assert processor.detected("znver5", ZEN5) == ("znver5", tuple(sorted(ZEN5)))


def test_a_limit_adds_nothing_that_the_processor_lacks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_MAX_ISA", "avx512")
    monkeypatch.setattr(processor.platform, "machine", lambda: "x86_64")
    assert processor.detected("nehalem", {"sse2": True, "sse4.2": True}) == ("nehalem", ("sse2", "sse4.2"))


def test_other_architectures_refuse_a_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_MAX_ISA", "avx2")
    monkeypatch.setattr(processor.platform, "machine", lambda: "aarch64")
    with pytest.raises(ArgumentError, match="unset GRAPHC_MAX_ISA"):
        processor.detected("neoverse-n1", {"neon": True})


PROGRAM = """
import json
import numpy as np
import graphc as gc
from graphc.codegen.machine.target import host_target, target_named
from graphc.compiler.stages import Stages
from graphc.errors import CompileError
net = gc.nn.Linear(64, 32)
x = gc.rand(16, 64)
y = gc.compile(net)(x)
names = ("sse2", "avx2", "avx512")
text = Stages(gc.trace(net, x), target=host_target()).text("asm")
refused = []
for name in names:
    try:
        gc.compile(net, target=name)(x)
    except CompileError:
        refused.append(name)
print(json.dumps([host_target().vector_bytes, "zmm" in text, "ymm" in text, refused, float((y - net(x)).abs().max())]))
"""


@pytest.mark.skipif(processor.platform.machine() != "x86_64", reason="levels are those of x86-64")
@pytest.mark.parametrize(("limit", "refused"), [("sse2", ["avx2", "avx512"]), ("avx2", ["avx512"])])
def test_a_process_with_a_limit_compiles_and_runs_nothing_beyond_it(limit: str, refused: list[str]):
    environment = {**os.environ, "GRAPHC_MAX_ISA": limit, "GRAPHC_CACHE": "off"}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    width, has_zmm, has_ymm, not_run, error = json.loads(done.stdout)
    assert width <= {"sse2": 16, "avx2": 32}[limit] and not has_zmm and has_ymm <= (limit == "avx2")
    assert not_run[-len(refused) :] == refused and error < 1e-5
