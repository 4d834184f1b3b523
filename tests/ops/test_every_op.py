"""Proves every op of the registry on its samples: types, gradients, graph and kernel execution, errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

import graphc.ops.registry
from graphc.checks.op_check import (
    check_error,
    check_gradients,
    check_reference,
    check_statements,
    is_differentiable,
    sample_graph,
)
from graphc.codegen.machine.target import host_target
from graphc.ir.graph.graph import CONSTANT
from graphc.ir.graph.interpret import Evaluator
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import collect_data, print_graph
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.statements import Program
from graphc.ir.op import REGISTRY, ErrorSample, OpDef, Sample, Trait
from tests import native
from tests.ops.one_kernel import KernelByKernel

OPS = list(REGISTRY.values())
SAMPLES = [
    pytest.param(op, sample, id=f"{op.name}-{i}")
    for op in OPS
    for i, sample in enumerate(op.samples() if op.samples else ())
]
ERRORS = [pytest.param(op, sample, id=f"{op.name}-{i}") for op in OPS for i, sample in enumerate(op.error_samples)]
TOLERANCE = {"float32": 2e-6, "float64": 1e-13}


def run_eagerly(op: OpDef, sample: Sample) -> tuple[np.ndarray, ...]:
    """Run the numpy reference, which all others are compared with."""
    return op.evaluate(sample.operands, op.normalize(sample.attrs))


def run_graph(op: OpDef, sample: Sample) -> tuple[np.ndarray, ...]:
    """The graph interpreter."""
    return Evaluator().run(sample_graph(op, sample.operands, sample.attrs), sample.operands)


def run_kernels(op: OpDef, sample: Sample) -> tuple[np.ndarray, ...]:
    """Decomposition, kernel rules and the kernel interpreter."""
    return KernelByKernel().run(sample_graph(op, sample.operands, sample.attrs), sample.operands)


class SampleStages:
    """Stages of the compile path for one sample, each made once for all backends that need it."""

    def __init__(self, op: OpDef, sample: Sample):
        self.sample = sample
        self.graph = sample_graph(op, sample.operands, sample.attrs)

    @cached_property
    def lowered(self) -> Program:
        """Program after fusion and lowering."""
        return native.lowered(self.graph)

    @cached_property
    def scheduled(self) -> Program:
        """Program scheduled for this machine, its memory planned."""
        return native.scheduled(self.lowered, host_target())

    def run(self, run: native.Run) -> list[np.ndarray]:
        """Return the outputs; a written state holds what its write returns."""
        outputs, state = native.with_state(self.graph, run, self.sample.operands)
        for array in state.values():
            np.testing.assert_array_equal(array, outputs[0])
        return outputs


_last: list[SampleStages] = []
"""Stages of the sample that ran last: its backends run one after the other."""


def stages_of(op: OpDef, sample: Sample) -> SampleStages:
    """Return the stages of a sample."""
    if not _last or _last[0].sample is not sample:
        _last[:] = [SampleStages(op, sample)]
    return _last[0]


def run_lowered(op: OpDef, sample: Sample) -> list[np.ndarray]:
    """Fusion, lowering and the kernel interpreter."""
    stages = stages_of(op, sample)
    return stages.run(lambda arrays: list(run_program(stages.lowered, arrays)))


def run_scheduled(op: OpDef, sample: Sample) -> list[np.ndarray]:
    """The program scheduled for this machine, run by the kernel interpreter in the planned memory."""
    stages = stages_of(op, sample)
    return stages.run(lambda arrays: list(run_program(stages.scheduled, arrays)))


def run_native(op: OpDef, sample: Sample) -> list[np.ndarray]:
    """Native code for this machine."""
    stages = stages_of(op, sample)
    return stages.run(native.Native(stages.scheduled, host_target()))


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
        if a.dtype.kind == "c":
            a, b = (np.stack([x.real, x.imag]) for x in (a, b))
        if a.dtype.kind != "f":
            np.testing.assert_array_equal(a, b)
            continue
        rtol = TOLERANCE[a.dtype.name]
        finite = np.abs(b[np.isfinite(b)])
        np.testing.assert_allclose(a, b, rtol=4 * rtol, atol=rtol * min(finite.max(initial=0.0), 1.0))


def test_every_family_is_registered():
    folder = Path(graphc.ops.registry.__file__).parent
    files = [path for path in folder.rglob("*.py") if path.stem != "define_op"]
    defining = [path for path in files if re.search(r"(=|return) define\(", path.read_text("utf-8"))]
    names = {path.relative_to(folder).with_suffix("").as_posix().replace("/", ".") for path in defining}
    assert names == {family.__name__.removeprefix("graphc.ops.") for family in graphc.ops.registry.FAMILIES}


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_definition_is_complete(op: OpDef):
    assert op.doc.strip().endswith(".")
    assert op.reference is not None
    hosts = op.has(Trait.HOST) or op.name == "gradient_slots"  # whose gradient calls Python
    assert hosts or (op.samples is not None and len(op.samples()) >= 1)
    assert op.error_samples or op is CONSTANT
    assert all(a.doc for a in op.attrs)
    called = op.has(Trait.HOST) or op.has(Trait.BRANCH) or op.has(Trait.WHILE)
    assert op.lower or op.lower_nest or op.decompose or op.complex or called or op is CONSTANT
    assert op.has(Trait.PURE) != op.has(Trait.EFFECT), "an op is pure or has an effect"
    if isinstance(op.vjp, tuple):
        assert len(op.vjp) == len(op.operands) and not op.variadic
    if any(s.differentiable and any(a.dtype.kind in "fc" for a in s.operands) for s in op.samples()):
        assert op.vjp is not None


@pytest.mark.parametrize("op,sample", SAMPLES)
def test_reference_has_the_declared_type(op: OpDef, sample: Sample):
    check_reference(op, sample)


@pytest.mark.parametrize("op,sample", SAMPLES)
def test_what_the_definition_states_holds(op: OpDef, sample: Sample):
    check_statements(op, sample)


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


@pytest.mark.parametrize("op,sample", [p for p in SAMPLES if is_differentiable(*p.values)])
def test_derivatives_of_both_orders(op: OpDef, sample: Sample):
    check_gradients(op, sample)


@pytest.mark.parametrize("op,sample", ERRORS)
def test_error_samples(op: OpDef, sample: ErrorSample):
    check_error(op, sample)
