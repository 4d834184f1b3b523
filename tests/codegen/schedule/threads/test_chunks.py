"""Shares of kernels: which loops are shared, that chunks cover every iteration once, and that their order is free."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from graphc.base.dtypes import float32, int64
from graphc.codegen.machine.costs import DEFAULT
from graphc.codegen.machine.target import Target, host_target
from graphc.codegen.schedule.estimate.cost import StatementCounts
from graphc.codegen.schedule.expansion.expand import expand
from graphc.codegen.schedule.loops.distribute import distribute_loops
from graphc.codegen.schedule.pipeline import schedule_program
from graphc.codegen.schedule.threads.chunks import Chunking, Share, chunk_kernel
from graphc.ir.graph.parse import parse_graph
from graphc.ir.kernel.index import Axis, Index, as_index
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.statements import (
    Acc,
    Buffer,
    Const,
    Kernel,
    Load,
    Loop,
    Program,
    Read,
    Stmt,
    Store,
    Update,
)
from graphc.ir.op import REGISTRY
from graphc.ops import registry
from tests.codegen.chunks import Chunks
from tests.native import lowered
from tests.ops.test_every_op import sample_graph

assert registry.FAMILIES
TARGET = host_target()
SAMPLES = [
    pytest.param(op, sample, id=f"{op.name}-{i}")
    for op in REGISTRY.values()
    for i, sample in enumerate(op.samples() if op.samples else ())
]


def check_chunks(program: Program, arrays: dict[str, np.ndarray], target: Target = TARGET) -> list[Chunking]:
    """Every call of a scheduled program gives the same bits as one kernel and as chunks in several orders; returns the
    splits of the kernels that have one. ``arrays`` are the storages by name and are left as the program leaves them."""
    chunkings = []
    for call in program.calls:
        kernel = program.kernel(call.kernel)
        chunking = chunk_kernel(kernel, StatementCounts(), DEFAULT.threads)
        before = [arrays[a] for a in call.args]
        expected = [a.copy() for a in before]
        Chunks(kernel, None, target).run(expected)
        if chunking is not None:
            chunkings.append(chunking)
            native = Chunks(kernel, chunking, target)
            for chunks in (1, 2, 7):
                for order in (range(chunks), reversed(range(chunks))):
                    got = [a.copy() for a in before]
                    native.run(got, order, chunks)
                    for buffer, a, b in zip(kernel.arguments, got, expected, strict=True):
                        np.testing.assert_array_equal(a, b, err_msg=f"{kernel.name} {buffer.name} in {chunks} chunks")
        for name, array in zip(call.args, expected, strict=True):
            arrays[name] = array
    return chunkings


def storages(program: Program, operands: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Memory for every storage: arguments and constants with their values, others full of garbage."""
    arguments = iter(operands)
    arrays = {}
    for s in program.storages:
        if s.cls in ("input", "param", "state"):
            arrays[s.name] = np.array(next(arguments), order="C")
        elif s.cls == "constant":
            arrays[s.name] = np.array(s.data, order="C")
        else:
            arrays[s.name] = np.full(s.nbytes, 0x7F, np.uint8).view(s.dtype.numpy).reshape(s.shape)
    return arrays


@pytest.mark.sampled(40)
@pytest.mark.parametrize("op,sample", SAMPLES)
def test_parts_of_every_op(op, sample):
    graph = sample_graph(op, sample.operands, sample.attrs)
    program = schedule_program(lowered(graph), TARGET)
    check_chunks(program, storages(program, list(sample.operands)))


ROWS = """
graph @rows(%x: f32[37,50]) -> (f32[37,50], f32[37]) {
  %m = max(%x) {axes=[1], keepdims=true} : f32[37,1]
  %d = sub(%x, %m) : f32[37,50]
  %e = exp(%d) : f32[37,50]
  %s = sum(%e) {axes=[1], keepdims=true} : f32[37,1]
  %y = div(%e, %s) : f32[37,50]
  %r = sum(%y) {axes=[1]} : f32[37]
  return %y, %r
}
"""
MATMUL = """
graph @product(%x: f32[65,30], %w: f32[30,70], %b: f32[70]) -> (f32[65,70]) {
  %h = matmul(%x, %w) : f32[65,70]
  %a = add(%h, %b) : f32[65,70]
  %y = maximum(%a, f32(0.0)) : f32[65,70]
  return %y
}
"""
TRANSPOSED = MATMUL.replace("f32[30,70]", "f32[70,30]").replace("%w) :", "%w) {transpose_b=true} :")
BATCHES = """
graph @batches(%x: f32[3,40,9], %w: f32[3,9,20]) -> (f32[3,40,20]) {
  %y = matmul(%x, %w) : f32[3,40,20]
  return %y
}
"""
POINTS = """
graph @points(%x: f32[1003]) -> (f32[1003]) {
  %e = exp(%x) : f32[1003]
  %y = add(%e, %x) : f32[1003]
  return %y
}
"""
SCATTER = """
graph @scatter(%x: f32[5,30,7], %i: i64[90], %u: f32[5,90,7]) -> (f32[5,30,7]) {
  %y = scatter_add(%x, %i, %u) {axis=1} : f32[5,30,7]
  return %y
}
"""


@pytest.mark.parametrize("text", [ROWS, MATMUL, TRANSPOSED, BATCHES, POINTS, SCATTER])
@pytest.mark.parametrize("stage", ["lowered", "scheduled"])
def test_parts_of_larger_kernels(text: str, stage: str):
    graph = parse_graph(text)
    random = np.random.default_rng(0)
    operands = [
        random.integers(0, 30, v.shape) if v.dtype is int64 else random.normal(size=v.shape).astype(np.float32)
        for v in graph.inputs
    ]
    program = lowered(graph)
    if stage == "scheduled":
        program = schedule_program(program, TARGET)
    else:
        program = distribute_loops(program)
        program = replace(program, kernels=tuple(map(expand, program.kernels)))
    arrays = storages(program, operands)
    assert check_chunks(program, arrays), "nothing was shared"
    for name, expected in zip(
        [s.name for s in program.storages if s.cls == "output"], run_program(program, operands), strict=True
    ):
        np.testing.assert_allclose(arrays[name], expected, rtol=1e-5, atol=1e-5)


# ---- decisions

X = Buffer("x", float32, 1 << 20, "in")
Y = Buffer("y", float32, 1 << 20, "out")
Z = Buffer("z", float32, 1 << 20, "inout")
_numbers = itertools.count()


def axis(extent: int) -> Axis:
    return Axis(f"i{next(_numbers)}", extent)


def parallel(a: Axis, *body: Stmt, kind: str = "parallel") -> Loop:
    return Loop(a, kind, body)


def copy(*axes: Axis, source: str = "x", target: str = "y", combine: str | None = None) -> tuple[Stmt, ...]:
    """``target[i] = source[i]`` at a row-major place."""
    index = Index()
    for a in axes:
        index = index * a.extent + as_index(a)
    name = f"v{next(_numbers)}"
    return Load(name, source, index, float32), Store(target, index, name, combine=combine)


def chunked(*body: Stmt, buffers: tuple[Buffer, ...] = (X, Y)) -> Chunking | None:
    return chunk_kernel(Kernel("k", buffers, body), StatementCounts(), DEFAULT.threads)


def test_a_long_loop_is_shared_as_it_is():
    a = axis(1000)
    chunking = chunked(parallel(a, *copy(a)))
    assert chunking is not None
    assert (chunking.grains, chunking.shares) == (1000, {a: Share(0, 1, True)})


def test_a_short_loop_is_opened():
    a, b = axis(3), axis(500)
    chunking = chunked(parallel(a, parallel(b, *copy(a, b))))
    assert chunking is not None
    assert (chunking.grains, chunking.shares) == (1500, {a: Share(0, 500, False), b: Share(0, 1, True)})


def test_a_loop_whose_axis_another_loop_has_is_not_shared():
    """All loops over a shared axis would be cut into chunks, those too that belong to one chunk."""
    a, b, c, d, inner = axis(3), axis(50), axis(50), axis(3), axis(1000)
    outer_nest = parallel(a, parallel(b, parallel(inner, *copy(a, b, inner), kind="serial")))
    for shared in (c, b):
        other_nest = parallel(d, parallel(shared, *copy(d, shared, target="z")))
        chunking = chunked(outer_nest, other_nest, buffers=(X, Y, Z))
        assert (chunking is None) == (shared is b)
        assert chunking is None or (b in chunking.shares and d in chunking.shares and c not in chunking.shares)


def test_heavier_iterations_take_more_grains():
    a, b = axis(100), axis(100)
    inner = axis(50)
    light = parallel(a, *copy(a))
    heavy = parallel(b, parallel(inner, *copy(b, inner, target="z"), kind="serial"))
    chunking = chunked(light, heavy, buffers=(X, Y, Z))
    assert chunking is not None
    assert chunking.shares[a] == Share(0, 3, True)
    assert chunking.shares[b] == Share(300, 50 * 3 + 1, True)


def test_a_tail_is_run_by_one_thread():
    a, lane = axis(100), axis(7)
    tail = parallel(lane, *copy(lane, target="z"), kind="vector")
    chunking = chunked(parallel(a, *copy(a)), tail, buffers=(X, Y, Z))
    assert chunking is not None
    (once,) = [x for x in chunking.shares if x is not a]
    assert once.extent == 1 and chunking.shares[once] == Share(100, 1, True)
    assert chunking.kernel.body[1] == Loop(once, "parallel", (tail,))


def test_what_one_loop_writes_and_another_reads_is_not_shared():
    a, b = axis(100), axis(100)
    assert chunked(parallel(a, *copy(a)), parallel(b, *copy(b, source="y", target="z")), buffers=(X, Y, Z)) is None


def test_scratch_of_one_iteration_is_shared_and_scratch_across_loops_is_not():
    a, b, c = axis(100), axis(64), axis(64)
    scratch = Buffer("s", float32, 64, "scratch")
    fill = parallel(b, *copy(b, target="s"))
    drain = parallel(c, Load("w", "s", as_index(c), float32), Store("y", as_index(a) * 64 + as_index(c), "w"))
    assert chunked(parallel(a, fill, drain), buffers=(X, Y, scratch)) is not None
    assert chunked(fill, parallel(c, *copy(c, source="s")), buffers=(X, Y, scratch)) is None


def filled_and_drained(count: int, low: int = 0, stride: int = 1):
    """A loop that fills scratch and reads it, beginning at ``low`` of y."""
    a, b, c = axis(50), axis(count), axis(64)
    fill = parallel(b, Load("v", "x", as_index(b), float32), Store("s", as_index(b) * stride, "v"))
    drain = parallel(c, Load("w", "s", as_index(c), float32), Store("y", as_index(a) * 64 + as_index(c) + low, "w"))
    return parallel(a, fill, drain)


def test_loops_that_fill_scratch_for_themselves_are_shared():
    scratch = Buffer("s", float32, 128, "scratch")
    first = filled_and_drained(64)
    assert chunked(first, filled_and_drained(64, 3200), buffers=(X, Y, scratch)) is not None
    assert chunked(first, filled_and_drained(63, 3200), buffers=(X, Y, scratch)) is None, "it reads one of the first"
    assert chunked(first, filled_and_drained(64, 3200, 2), buffers=(X, Y, scratch)) is None, "every other one"


@pytest.mark.parametrize(
    ("rows", "columns", "begin", "is_shared"),
    [((50, 50), (64, 64), 3200, True), ((100, 100), (40, 24), 40, True), ((100, 100), (40, 24), 39, False)],
)
def test_updates_in_place_of_parts_that_lie_apart_are_shared(rows, columns, begin, is_shared):
    """Rows, or columns, of 64 elements each: the parts of a product with what is left of it."""
    updates = []
    for number, start in enumerate((0, begin)):
        a, b = axis(rows[number]), axis(columns[number])
        at = as_index(a) * 64 + as_index(b) + start
        load, store = Load(f"v{number}", "y", at, float32), Store("y", at, f"v{number}")
        updates.append(parallel(a, parallel(b, load, store, kind="serial")))
    assert (chunked(*updates, buffers=(X, replace(Y, role="inout"))) is not None) is is_shared


def test_a_loop_with_much_repeated_work_is_not_opened():
    a, r, b = axis(4), axis(1000), axis(1000)
    acc = Acc("sum", float32, "add", Const(0.0, float32))
    total = Loop(r, "reduce", (Load("t", "x", as_index(a) * 1000 + as_index(r), float32), Update("sum", "t")))
    write = parallel(b, Store("y", as_index(a) * 1000 + as_index(b), "total"))
    chunking = chunked(parallel(a, acc, total, Read("total", "sum"), write))
    assert chunking is not None and chunking.shares == {a: Share(0, 1, True)}


def test_a_reduction_to_one_number_is_not_shared():
    r = axis(1000)
    acc = Acc("sum", float32, "add", Const(0.0, float32))
    total = Loop(r, "reduce", (Load("t", "x", as_index(r), float32), Update("sum", "t")))
    assert chunked(acc, total, Read("total", "sum"), Store("y", as_index(0), "total")) is None
    stores = [Store("y", as_index(i), "total") for i in range(5)]
    kernel = Kernel("k", (X, Y), (acc, total, Read("total", "sum"), *stores))
    assert chunk_kernel(kernel, StatementCounts(), DEFAULT.threads, 0.1) is None


def test_combining_stores_must_lie_apart():
    a, b = axis(100), axis(30)
    apart = Store("z", as_index(a) * 30 + as_index(b), "v", combine="add")
    same = Store("z", as_index(b), "v", combine="add")
    near = Store("z", as_index(a) * 29 + as_index(b), "v", combine="add")
    load = Load("v", "x", as_index(a), float32)
    shared = {
        name: chunked(parallel(a, load, parallel(b, store, kind="serial")), buffers=(X, Z))
        for name, store in (("apart", apart), ("same", same), ("near", near))
    }
    assert {name: chunking is not None for name, chunking in shared.items()} == {
        "apart": True,
        "same": False,
        "near": False,
    }


def test_stores_at_places_from_data_wait_for_what_lies_there():
    copy_first = """graph @g(%x: f32[4096], %i: i64[], %u: f32[]) -> (f32[4096]) {
  %y = scatter(%x, %i, %u) {axis=0} : f32[4096]
  return %y
}"""
    program = distribute_loops(lowered(parse_graph(copy_first)))
    (kernel,) = program.kernels
    assert sum(isinstance(s, Loop) for s in kernel.body) == 1, "one loop copies, a statement outside of it stores"
    assert chunk_kernel(kernel, StatementCounts(), DEFAULT.threads) is None


def test_one_iteration_is_not_shared():
    a, b = axis(1), axis(9)
    assert chunked(parallel(a, parallel(b, *copy(b), kind="serial"))) is None
    assert chunked() is None


@pytest.mark.parametrize("extents", [(7,), (3, 11), (2, 3, 5)])
def test_every_iteration_runs_in_exactly_one_thread(extents: tuple[int, ...]):
    """Counts with combining stores: chunks that overlap would count twice."""
    axes = [axis(n) for n in extents]
    index = Index()
    for a in axes:
        index = index * a.extent + as_index(a)
    size = int(np.prod(extents))
    body: tuple[Stmt, ...] = (Store("c", index, Const(1.0, float32), combine="add"),)
    for a in reversed(axes):
        body = (Loop(a, "parallel", body),)
    kernel = Kernel("k", (Buffer("c", float32, size, "inout"),), body)
    chunking = chunk_kernel(kernel, StatementCounts(), DEFAULT.threads)
    assert chunking is not None
    native = Chunks(kernel, chunking, TARGET)
    for chunks in range(1, size + 3):
        counts = np.zeros(size, np.float32)
        native.run([counts], range(chunks), chunks)
        np.testing.assert_array_equal(counts, np.ones(size, np.float32))


def test_shares_are_even():
    program = schedule_program(lowered(parse_graph(MATMUL.replace("65", "650").replace("70", "700"))), TARGET)
    for call in program.calls:
        chunking = chunk_kernel(program.kernel(call.kernel), StatementCounts(), DEFAULT.threads)
        assert chunking is not None and chunking.grains >= 32
