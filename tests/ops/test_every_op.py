"""Proves every op of the registry on its samples: types, gradients, graph and kernel execution, errors."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import graphc.ops.registry
from graphc.codegen.machine.target import host_target
from graphc.errors import GraphcError
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import CONSTANT, Graph, Value
from graphc.ir.graph.interpret import Evaluator
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import collect_data, print_graph
from graphc.ir.op import REGISTRY, ErrorSample, OpDef, Sample, Trait
from tests import native
from tests.ops.derivative import array_type, check_derivatives
from tests.ops.one_kernel import KernelByKernel

OPS = list(REGISTRY.values())
SAMPLES = [
    pytest.param(op, sample, id=f"{op.name}-{i}")
    for op in OPS
    for i, sample in enumerate(op.samples() if op.samples else ())
]
ERRORS = [pytest.param(op, sample, id=f"{op.name}-{i}") for op in OPS for i, sample in enumerate(op.error_samples)]
TOLERANCE = {"float32": 2e-6, "float64": 1e-13}


def sample_graph(op: OpDef, operands: Sequence[np.ndarray], attrs: dict) -> Graph:
    """One application of the op to arguments of the graph; a written state is a state argument."""
    graph = Graph(op.name)
    for i, array in enumerate(operands):
        written = i == 0 and op.has(Trait.STATE_WRITE)
        name = op.operands[min(i, len(op.operands) - 1)].lstrip("*")
        graph.add_input(array_type(array), name, *(("state", "the.state") if written else ()))
    graph.set_outputs(emit(graph, op, graph.inputs, attrs))
    return graph


def run_eagerly(op: OpDef, sample: Sample) -> tuple[np.ndarray, ...]:
    """What all others are compared with: the numpy reference itself."""
    return op.evaluate(sample.operands, op.normalize(sample.attrs))


def run_graph(op: OpDef, sample: Sample) -> tuple[np.ndarray, ...]:
    """The graph interpreter."""
    return Evaluator().run(sample_graph(op, sample.operands, sample.attrs), sample.operands)


def run_kernels(op: OpDef, sample: Sample) -> tuple[np.ndarray, ...]:
    """Decomposition, kernel rules and the kernel interpreter."""
    return KernelByKernel().run(sample_graph(op, sample.operands, sample.attrs), sample.operands)


def run_program(op: OpDef, sample: Sample, run: Callable[..., native.Results]) -> list[np.ndarray]:
    """The compile path up to some stage; a written state holds what its write returns."""
    outputs, state = run(sample_graph(op, sample.operands, sample.attrs), sample.operands)
    for array in state.values():
        np.testing.assert_array_equal(array, outputs[0])
    return outputs


def run_lowered(op: OpDef, sample: Sample) -> list[np.ndarray]:
    """Fusion, lowering and the kernel interpreter."""
    return run_program(op, sample, native.run_lowered)


def run_scheduled(op: OpDef, sample: Sample) -> list[np.ndarray]:
    """The program scheduled for this machine, run by the kernel interpreter in the planned memory."""
    return run_program(op, sample, partial(native.run_scheduled, target=host_target()))


def run_native(op: OpDef, sample: Sample) -> list[np.ndarray]:
    """Native code for this machine."""
    return run_program(op, sample, partial(native.run_native, target=host_target()))


BACKENDS: list[tuple[str, Callable[[OpDef, Sample], Sequence[np.ndarray]]]] = [
    ("graph", run_graph),
    ("kernels", run_kernels),
    ("lowered", run_lowered),
    ("scheduled", run_scheduled),
    ("native", run_native),
]
"""Ways to run one op; each must agree with ``run_eagerly`` on every sample."""


def assert_agree(got: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    """Equal types; equal numbers for integers and bools, and for floats up to a few roundings of the largest one."""
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if a.dtype.kind != "f":
            np.testing.assert_array_equal(a, b)
            continue
        rtol = TOLERANCE[a.dtype.name]
        finite = np.abs(b[np.isfinite(b)])
        np.testing.assert_allclose(a, b, rtol=4 * rtol, atol=rtol * min(finite.max(initial=0.0), 1.0))


def test_every_family_is_registered():
    folder = Path(graphc.ops.registry.__file__).parent
    files = [path for path in folder.glob("*.py") if path.stem != "define_op"]
    defining = {path.stem for path in files if re.search(r"(=|return) define\(", path.read_text("utf-8"))}
    assert defining == {family.__name__.rpartition(".")[2] for family in graphc.ops.registry.FAMILIES}


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_definition_is_complete(op: OpDef):
    assert op.doc.strip().endswith(".")
    assert op.reference is not None
    assert op.samples is not None and len(op.samples()) >= 1
    assert op.error_samples or op is CONSTANT
    assert all(a.doc for a in op.attrs)
    assert op.lower or op.lower_nest or op.decompose or op is CONSTANT
    assert op.has(Trait.PURE) != op.has(Trait.EFFECT), "an op is pure or has an effect"
    if isinstance(op.vjp, tuple):
        assert len(op.vjp) == len(op.operands) and not op.variadic
    if any(s.differentiable and any(a.dtype.kind == "f" for a in s.operands) for s in op.samples()):
        assert op.vjp is not None


@pytest.mark.parametrize("op,sample", SAMPLES)
def test_reference_has_the_declared_type(op: OpDef, sample: Sample):
    attrs = op.normalize(sample.attrs)
    types = op.result_types(tuple(array_type(a) for a in sample.operands), attrs)
    before = [a.copy() for a in sample.operands]
    for array in sample.operands:
        array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = op.evaluate(sample.operands, attrs)
    assert [array_type(a) for a in results] == list(types)
    for array, copy in zip(sample.operands, before, strict=True):
        np.testing.assert_array_equal(array, copy)
        if not op.has(Trait.VIEW):
            assert not any(np.shares_memory(array, result) for result in results), "only a view may share memory"


@pytest.mark.parametrize("op,sample", SAMPLES)
def test_what_the_definition_states_holds(op: OpDef, sample: Sample):
    attrs = op.normalize(sample.attrs)
    results = op.evaluate(sample.operands, attrs)
    if op.has(Trait.IDENTITY):
        assert_agree(results, sample.operands)
    if op.has(Trait.CONVERSION):
        (x,) = sample.operands
        assert (results[0].shape, results[0].dtype) == (x.shape, attrs["dtype"].numpy)
    if op.permutes is not None:
        np.testing.assert_array_equal(results[0], np.transpose(sample.operands[0], op.permutes(attrs)))
    halo = None if op.halo is None else op.halo(attrs)
    if halo is not None:
        widths = list(zip(halo.low, halo.high, strict=True))
        np.testing.assert_array_equal(results[0], np.pad(sample.operands[0], widths or 0, constant_values=halo.value))
    if op.parts is not None:
        left = np.ones(results[0].shape, bool)
        places = op.parts(tuple(map(array_type, sample.operands)), attrs)
        for operand, first in zip(sample.operands, places, strict=True):
            place = tuple(np.s_[i : i + n] for i, n in zip(first, operand.shape, strict=True))
            np.testing.assert_array_equal(results[0][place], operand)
            left[place] = False
        assert not left.any()


@pytest.mark.parametrize("backend", [pytest.param(run, id=name) for name, run in BACKENDS])
@pytest.mark.parametrize("op,sample", SAMPLES)
def test_backends_agree_with_the_reference(op: OpDef, sample: Sample, backend):
    got, expected = (run(op, sample) for run in (backend, run_eagerly))
    assert_agree(got, expected)


@pytest.mark.parametrize("op,sample", SAMPLES)
def test_text_round_trip(op: OpDef, sample: Sample):
    graph = sample_graph(op, sample.operands, sample.attrs)
    text = print_graph(graph)
    again = parse_graph(text, collect_data(graph))
    assert again == graph
    assert print_graph(again) == text


def is_differentiable(op: OpDef, sample: Sample) -> bool:
    return sample.differentiable and op.vjp is not None and any(a.dtype.kind == "f" for a in sample.operands)


@pytest.mark.parametrize("op,sample", [p for p in SAMPLES if is_differentiable(*p.values)])
def test_derivatives_of_both_orders(op: OpDef, sample: Sample):
    arrays = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in sample.operands]

    def function(graph: Graph) -> Sequence[Value]:
        results = emit(graph, op, graph.inputs, sample.attrs)
        return results[: sample.attrs.get("results", len(results))]

    check_derivatives(function, arrays)


@pytest.mark.parametrize("op,sample", ERRORS)
def test_error_samples(op: OpDef, sample: ErrorSample):
    graph = Graph("wrong")
    operands = [graph.add_input(t, f"x{i}") for i, t in enumerate(sample.types)]
    with pytest.raises(sample.error) as caught:
        emit(graph, op, operands, sample.attrs)
    error = caught.value
    assert isinstance(error, GraphcError)
    assert sample.message in error.what
    assert error.what.startswith(op.name) or "attribute" in error.what
    assert error.where is not None and error.where.startswith(f"{op.name}(")
