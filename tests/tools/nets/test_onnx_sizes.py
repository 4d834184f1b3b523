"""ONNX graphs of open sizes: a seeded sample agrees with ONNX Runtime, and what differs is noticed."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime", reason="the net compares with ONNX Runtime")
pytest.importorskip("torch", reason="the builder of nets uses PyTorch")

from onnx import TensorProto

from tools.nets import onnx_sizes, run
from tools.nets.builder import Unfit
from tools.nets.onnx_graphs import STEPS, OnnxBuilder, drawn
from tools.nets.onnx_parts import PARTS, _Body, exact

SAMPLE = 12


def test_a_name_means_the_same_graph():
    one, same, other = (drawn(3, number, (*STEPS, *PARTS)).model() for number in (1, 1, 2))
    assert one == same != other


@pytest.mark.slow
def test_no_graph_of_a_sample_differs():
    outcomes = {name: onnx_sizes.judge(name) for name in islice(onnx_sizes.NET.cases(1), SAMPLE)}
    assert not {name: o for name, o in outcomes.items() if o.kind in run.BAD or o.kind == run.REFUSED}
    assert sum(o.kind == run.EQUAL for o in outcomes.values()) >= SAMPLE // 2


def test_every_step_adds_nodes_that_onnx_accepts():
    onnx = pytest.importorskip("onnx")
    for step in dict.fromkeys((*STEPS, *PARTS)):
        builder = _with(step)
        onnx.checker.check_model(builder.model(), full_check=True)


def _with(step):
    """The first graph of some to which a step adds nodes."""
    for number in range(200):
        builder = OnnxBuilder(7, number)
        builder.input(int(builder.random.integers(2, 5)))
        try:
            step(builder)
        except Unfit:
            continue
        return builder
    raise AssertionError(f"{step.__name__} fits no graph")


def test_only_values_with_the_same_bits_everywhere_are_rounded_to_codes():
    builder = OnnxBuilder(5, 0)
    x = builder.input(2)
    moved = builder.keep(builder.node("Transpose", builder.node("Neg", x.name), perm=[1, 0]), x.shape[::-1])
    builder.keep(builder.node("Tanh", moved.name), moved.shape)
    assert {exact(builder).name for _ in range(40)} == {x.name, moved.name}


def test_differences_are_noticed():
    """The end of a slice is the smaller one of a size and a number, in one program for all sizes."""
    builder = OnnxBuilder(5, 0)
    x = builder.input(2)
    axis = next(i for i, label in enumerate(builder.inputs[0][1]) if isinstance(label, str))
    top = builder.node("Min", builder.size_of(x, axis).name, builder.constant([4]))
    name = builder.node("Slice", x.name, builder.constant([0]), top, builder.constant([axis]))
    shape = [np.minimum(n, 4) if i == axis else n for i, n in enumerate(x.shape)]
    builder.keep(name, shape)
    data = builder.model().SerializeToString()
    expected = onnx_sizes._expected(builder, data)
    outcome = onnx_sizes.judged(builder, data, expected)
    assert outcome.kind == run.EQUAL, outcome.detail
    expected[1][0] = expected[1][0] + 1
    assert onnx_sizes.judged(builder, data, expected).kind == run.DIFFERENT


def test_programs_for_both_sides_of_an_order_are_noticed():
    """A branch on a size has a program for each side."""
    builder = OnnxBuilder(5, 0)
    x = builder.input(2)
    axis = next(i for i, label in enumerate(builder.inputs[0][1]) if isinstance(label, str))
    limit = int(x.shape[axis].max())
    is_small = builder.node("Less", builder.scalar(builder.size_of(x, axis)), builder.constant(limit))
    bodies = []
    for op in ("Relu", "Neg"):
        body = _Body(builder)
        body.prefix += op
        bodies.append(body.graph([], [(body.node(op, x.name), TensorProto.FLOAT, 2)]))
    builder.keep(builder.node("If", is_small, then_branch=bodies[0], else_branch=bodies[1]), x.shape)
    data = builder.model().SerializeToString()
    outcome = onnx_sizes.judged(builder, data, onnx_sizes._expected(builder, data))
    assert outcome.kind == onnx_sizes.BRANCHED
    label = builder.inputs[0][1][axis]
    assert outcome.detail.startswith(f"2 programs: {limit} <= {label} ") and f"; {limit} > {label} " in outcome.detail
