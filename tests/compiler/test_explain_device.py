"""Reports of explain about kernels on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import graphc as gc
from graphc.codegen.machine.target import target_named
from graphc.compiler.explain import explain
from graphc.compiler.explain_device import PATHS, KernelExecution
from graphc.compiler.stages import Stages
from graphc.nn import functional as F


def paths(function: Callable[..., Any], *shapes: tuple[int, ...]) -> list[KernelExecution]:
    stages = Stages(gc.trace(function, *[gc.zeros(shape) for shape in shapes]), target=target_named("sm_90"))
    found = explain(stages)
    assert str(found).count("\n   ") and "\npaths:\n" in str(found)
    return [call.device for call in found.calls if call.device is not None]


@pytest.mark.parametrize(
    "path,function,shapes",
    [
        ("thread", lambda x: x * 2 + 1, [(64, 300)]),
        ("warp", lambda x: F.softmax(x, -1), [(512, 40)]),
        ("block", lambda x: F.softmax(x, -1), [(16, 4000)]),
        ("tiles", lambda a, b: a @ b, [(64, 24), (24, 32)]),
        ("library", lambda a, b: a @ b, [(512, 512), (512, 512)]),
    ],
)
def test_the_path_of_a_kernel(path: str, function: Callable[..., Any], shapes: list[tuple[int, ...]]):
    found = paths(function, *shapes)
    assert found[0].path == path and found[0].threads and found[0].blocks
    assert PATHS[path] in str(found[0])
    assert ("shared bytes" in str(found[0])) == (path != "library")


def test_tiles_lie_in_shared_memory():
    assert paths(lambda a, b: a @ b, (64, 24), (24, 32))[0].shared > 0


def test_programs_of_the_cpu_have_no_paths():
    found = explain(Stages(gc.trace(lambda x: x + 1, gc.zeros(8))))
    assert all(call.device is None for call in found.calls) and "paths:" not in str(found)
