"""Runs graphs as kernels and as native code for any target of this machine, every stage verified on the way."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from graphc.codegen.llvm.build import build_object
from graphc.codegen.llvm.entry import bound_storages, emit_program
from graphc.codegen.machine.linkage import ENTRY
from graphc.codegen.machine.target import Target, architecture, target_named
from graphc.codegen.schedule.memory.bufferize import plan_memory
from graphc.codegen.schedule.memory.non_temporal import non_temporal_buffers
from graphc.codegen.schedule.pipeline import plan_execution, schedule_program
from graphc.codegen.schedule.threads.execution import Execution
from graphc.compiler.ready import target_spec
from graphc.files.manifest import TargetSpec
from graphc.ir.graph.graph import Graph, Value, input_path
from graphc.ir.graph.interpret import Evaluator, copy
from graphc.ir.kernel.dims import bind
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.statements import Kernel, Program, Storage
from graphc.ir.kernel.verify import verify_program
from graphc.lowering.program import lower_graph
from graphc.passes.decompose import Decompose
from graphc.passes.split_complex import SplitComplex
from graphc.runtime.loader import Library, host, load_object, runs_here

TARGETS = ("host", "avx2", "sse2")
"""Targets whose code this machine may be able to run."""

Run = Callable[[list[np.ndarray]], list[np.ndarray]]
"""Computes the outputs from one array per input, param and state; writes states in place."""
Results = tuple[list[np.ndarray], dict[str, np.ndarray]]
"""Outputs, and the new content of every written state by path."""
Place = Callable[[Storage | None, np.ndarray], np.ndarray]
"""Puts an array (of a bound storage; None is the arena) where a call shall find it."""


def priced(target: Target, **topics: dict[str, Any]) -> Target:
    """A target on which some things have other costs: ``priced(target, memory={"vast": 2.0})``."""
    costs = target.costs
    changed = {topic: replace(getattr(costs, topic), **values) for topic, values in topics.items()}
    return replace(target, costs=replace(costs, **changed))


def native_spec(target: Target) -> TargetSpec:
    """Return the target as the loader checks it: a fixed triple of this architecture is read as this machine's."""
    spec, here = target_spec(target), host()
    same = not (target.is_windows or target.is_macos) and architecture(target) == here.triple.partition("-")[0]
    return replace(spec, triple=here.triple) if same else spec


def why_not_here(target: Target) -> str:
    """Return why native code for a target cannot run on this machine, or an empty text."""
    return runs_here(native_spec(target))


def target_or_skip(name: str) -> Target:
    """Return the target of that name; skip the test where its code does not run."""
    target = target_named(name)
    reason = why_not_here(target)
    if reason:
        pytest.skip(f"code for {name} does not run here: {reason}")
    return target


def decomposed(graph: Graph) -> Graph:
    """Return a copy built from ops with kernel rules."""
    return Decompose().run(SplitComplex().run(copy(graph)).graph).graph


def lowered(graph: Graph) -> Program:
    """The graph as kernels, verified."""
    program = lower_graph(decomposed(graph))
    verify_program(program)
    return program


def scheduled(program: Program, target: Target) -> Program:
    """The program scheduled for a target, with its memory planned, verified."""
    result = plan_memory(schedule_program(program, target))
    verify_program(result)
    return result


def emitted(program: Program, target: Target) -> str:
    """The LLVM text of a scheduled program whose memory is planned, run as the schedule decides."""
    return emit_program(program, target, plan_execution(program, target))


class Native:
    """A scheduled program as native code in this process."""

    def __init__(self, program: Program, target: Target):
        self.program = program
        self.target = target
        # One thread and no polls: no symbol of a thread pool or of signals.
        self.text = emit_program(program, target, Execution(non_temporal_buffers(program, target)))

    @cached_property
    def library(self) -> Library:
        """The loaded code; raises CompileError where this machine lacks instructions of the target."""
        return load_object(build_object(self.text, self.target), ENTRY, native_spec(self.target))

    def __call__(
        self,
        arguments: Sequence[np.ndarray],
        place: Place = lambda _, array: array,
        sizes: Mapping[str, int] = MappingProxyType({}),
    ) -> list[np.ndarray]:
        """Run on one array per input, param and state; write states in place. Return the outputs. ``sizes`` holds the
        sizes of all named dimensions."""
        given, arrays, outputs = iter(arguments), [], []
        bound = bind(self.program, sizes) if sizes else self.program
        for storage in bound_storages(bound):
            type = storage.outside
            if storage.cls == "output":
                poison = np.full(storage.nbytes, 0xA5, np.uint8).view(type.dtype.numpy).reshape(type.shape)
                arrays.append(place(storage, poison))
                outputs.append(arrays[-1])
            elif storage.cls == "status":
                arrays.append(place(storage, np.zeros(storage.shape, storage.dtype.numpy)))
            elif storage.cls == "constant":
                arrays.append(place(storage, aligned_copy(np.asarray(storage.data))))
            else:
                array = next(given)
                assert (array.dtype, array.shape) == (type.dtype.numpy, type.shape) and array.flags.c_contiguous
                arrays.append(place(storage, array))
        arena = place(None, aligned_copy(np.full(bound.arena, 0xA5, np.uint8)))
        pointers = [a.ctypes.data for a in (*arrays, arena)] + [sizes[name] for name in sorted(sizes)]
        table = (ctypes.c_void_p * len(pointers))(*pointers)
        self.library.entry(ctypes.addressof(table))
        return outputs


def aligned_copy(array: np.ndarray) -> np.ndarray:
    """A dense copy whose memory starts at a multiple of 64 bytes."""
    raw = np.zeros(array.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    copy = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def run_native(graph: Graph, arguments: Sequence[np.ndarray], target: Target) -> Results:
    """The whole way, without graph passes."""
    native = Native(scheduled(lowered(graph), target), target)
    return with_state(graph, native, arguments)


def run_lowered(graph: Graph, arguments: Sequence[np.ndarray]) -> Results:
    """The lowered program by the kernel interpreter."""
    program = lowered(graph)
    return with_state(graph, lambda a: list(run_program(program, a)), arguments)


def run_scheduled(graph: Graph, arguments: Sequence[np.ndarray], target: Target) -> Results:
    """The scheduled program by the kernel interpreter, in its planned arena."""
    program = scheduled(lowered(graph), target)
    return with_state(graph, lambda a: list(run_program(program, a)), arguments)


def run_graph(graph: Graph, arguments: Sequence[np.ndarray]) -> Results:
    """The graph interpreter."""
    evaluator = Evaluator()
    with np.errstate(all="ignore"):
        outputs = evaluator.run(graph, arguments)
    return [np.asarray(o) for o in outputs], dict(evaluator.state)


def with_state(graph: Graph, run: Run, arguments: Sequence[np.ndarray]) -> Results:
    """Run a program of a graph on copies of the arguments; check that it changes only the states it writes."""
    given = [np.array(a, order="C") for a in arguments]
    outputs = run(given)
    state = {}
    for value, array, before in zip(graph.inputs, given, arguments, strict=True):
        if value in written(graph):
            state[input_path(value)] = array
        else:
            np.testing.assert_array_equal(array, before, err_msg=f"{value} was changed")
    return outputs, state


def written(graph: Graph) -> set[Value]:
    """Inputs that some node writes."""
    return {n.operands[0] for n in graph.nodes() if n.op.name == "state_write"}


@dataclass(frozen=True)
class Tolerance:
    """Tolerance for floats: relative to the element, and to the largest element of the array."""

    rtol: float = 2e-5
    scaled: float = 2e-6

    def check(self, got: Sequence[np.ndarray], expected: Sequence[np.ndarray], what: str = "") -> None:
        """Types are equal, integers too, floats close."""
        assert len(got) == len(expected)
        for number, (a, b) in enumerate(zip(got, expected, strict=True)):
            b = np.asarray(b)
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            if a.dtype.kind != "f":
                np.testing.assert_array_equal(a, b, err_msg=f"{what} result {number}")
                continue
            shrink = 1.0 if a.dtype.itemsize == 4 else 1e-7
            scale = np.abs(b[np.isfinite(b)]).max(initial=0.0)
            atol = self.scaled * shrink * max(float(scale), 1.0)
            np.testing.assert_allclose(a, b, rtol=self.rtol * shrink, atol=atol, err_msg=f"{what} result {number}")


def check_results(got: Results, expected: Results, tolerance: Tolerance, what: str = "") -> None:
    """Outputs and written states agree."""
    tolerance.check(got[0], expected[0], what)
    assert got[1].keys() == expected[1].keys()
    tolerance.check(list(got[1].values()), [expected[1][k] for k in got[1]], f"{what} state")


def check_native(
    graph: Graph, arguments: Sequence[np.ndarray], target: Target, tolerance: Tolerance | None = None
) -> None:
    """Check native code against the graph's interpretation."""
    expected = run_graph(graph, arguments)
    check_results(run_native(graph, arguments, target), expected, tolerance or Tolerance(), target.cpu)


def check_all(graph: Graph, arguments: Sequence[np.ndarray], tolerance: Tolerance | None = None) -> None:
    """Check lowered and scheduled kernels and native code against the graph, for every target of this machine."""
    limits = tolerance or Tolerance()
    expected = run_graph(graph, arguments)
    check_results(run_lowered(graph, arguments), expected, limits, "lowered")
    for name in TARGETS:
        target = target_or_skip(name)
        check_results(run_scheduled(graph, arguments, target), expected, limits, f"scheduled for {name}")
        check_results(run_native(graph, arguments, target), expected, limits, f"native for {name}")


def check_kernels(graph: Graph, count: int) -> list[Kernel]:
    """Asserts into how many kernel calls the graph is fused, packing and copies included; returns the kernels."""
    program = lowered(graph)
    calls = [c.kernel for c in program.calls]
    assert len(calls) == count, f"{len(calls)} kernels, not {count}: {', '.join(calls)}"
    return list(program.kernels)
