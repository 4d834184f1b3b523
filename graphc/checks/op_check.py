"""check_op: compare an op's reference with every way to run it, and its gradients with finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.difference import EXACT, difference
from graphc.base.dtypes import DType
from graphc.base.errors import ArgumentError, DTypeError, GraphcError, VerifyError
from graphc.base.records import dataclass
from graphc.checks.check import check_graph
from graphc.checks.op_derivatives import array_type, check_derivatives
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph, Value
from graphc.ir.op import ErrorSample, OpDef, Sample, Trait
from graphc.ops.define import OpFunction
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.pointwise.complex import view_as_complex, view_as_real
from graphc.ops.pointwise.elementwise import cast
from graphc.ops.rules import show
from graphc.tensors.tensor import Tensor


@dataclass(frozen=True)
class OpReport:
    """The numbers of comparisons."""

    name: str
    samples: int
    """Samples on which the reference, the graph, the kernels and native code agree."""
    differentiated: int
    """Samples at which first and second derivatives agree with finite differences."""
    refused: int
    """Invalid applications that raise the expected error."""

    def __str__(self) -> str:
        return f"{self.name}: {self.samples} samples, {self.differentiated} with derivatives, {self.refused} errors"


def check_op(op: OpFunction, *samples: Sample | Sequence[Any]) -> OpReport:
    """Check an op, for example one of ``define_op``, on the samples of its definition and on these.

    Further samples are operands as arrays, ``check_op(f, (x,), (x, y))``, or a ``graphc.ir.op.Sample`` with attributes.

    For each sample, the type rule must give the types of the reference's results, and the reference must not write to
    its operands. The statements of traits and fields must hold. The optimized graph, the lowered and scheduled kernels
    and the native code must compute the reference's results. At differentiable samples, first and second derivatives,
    in f64, must agree with finite differences. Error samples must raise the named error.

    Raise ArgumentError for anything but an op, and without samples; else VerifyError or GradientError, which
    name the difference and the sample.

    Example:
        >>> import graphc as gc
        >>> from graphc.ops.pointwise.elementwise import mul
        >>> report = gc.check_op(mul, ([1.0, 2.0], [3.0, 4.0]))
        >>> print(report)
        mul: ... samples, ... with derivatives, ... errors
    """
    if not isinstance(op, OpFunction):
        raise ArgumentError(f"check_op: {op!r} is not an op", remedy="pass a result of graphc.define_op")
    further = [s if isinstance(s, Sample) else Sample(tuple(map(np.asarray, s))) for s in samples]
    every = [*(op.op.samples() if op.op.samples else ()), *further]
    if not every:
        raise ArgumentError(
            f"check_op: {op.op.name} has no samples", remedy="pass some: check_op(f, (np.ones((2, 3)),))"
        )
    for number, sample in enumerate(every):
        try:
            check_sample(op.op, sample)
        except GraphcError as error:
            error.what = f"{op.op.name}, sample {number}: {error.what}"
            error.where = error.where or _application(op.op, sample)
            raise
    for wrong in op.op.error_samples:
        check_error(op.op, wrong)
    points = sum(is_differentiable(op.op, s) for s in every)
    return OpReport(op.op.name, len(every), points, len(op.op.error_samples))


def _application(op: OpDef, sample: Sample) -> str:
    attrs = ", ".join(f"{name}={value}" for name, value in sample.attrs.items())
    return f"{op.name}({', '.join(str(array_type(a)) for a in sample.operands)})" + (f" {{{attrs}}}" if attrs else "")


def check_sample(op: OpDef, sample: Sample) -> None:
    """Run all checks of one application."""
    check_reference(op, sample)
    check_statements(op, sample)
    report = check_graph(sample_graph(op, sample.operands, sample.attrs), sample.operands)
    bad = [stage for stage in report.stages if not stage.good]
    if bad:
        what = f"the {bad[0].stage} program differs from the reference by up to {bad[0].max_absolute:.3g}"
        raise VerifyError(what, remedy="compare lower, lower_nest or decompose with reference")
    if is_differentiable(op, sample):
        check_gradients(op, sample)


def sample_graph(op: OpDef, operands: Sequence[np.ndarray], attrs: dict[str, Any]) -> Graph:
    """Return a graph with one application of the op to its arguments. A written state is a state argument."""
    graph = Graph(op.name)
    for i, array in enumerate(operands):
        written = i == 0 and op.has(Trait.STATE_WRITE)
        name = op.operands[min(i, len(op.operands) - 1)].lstrip("*")
        graph.add_input(array_type(array), name, *(("state", "the.state") if written else ("input", "")))
    graph.set_outputs(emit(graph, op, graph.inputs, attrs))
    return graph


def check_reference(op: OpDef, sample: Sample) -> tuple[np.ndarray, ...]:
    """Return the results of the reference. Raise VerifyError unless they match the type rule, without a warning.

    Raise it also where an operand was written to, or where a result shares its memory although the op is not a view.
    """
    attrs = op.normalize(sample.attrs)
    types = op.result_types(tuple(array_type(a) for a in sample.operands), attrs)
    operands = [a.copy() for a in sample.operands]
    for array in operands:
        array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            results = op.evaluate(operands, attrs)
        except (ValueError, Warning) as error:
            raise VerifyError(f"the reference raises {type(error).__name__}: {error}") from error
    types_of_results = [array_type(a) for a in results]
    if types_of_results != list(types):
        what = (
            f"the reference gives {', '.join(map(str, types_of_results))}, the type rule {', '.join(map(str, types))}"
        )
        raise VerifyError(what, remedy="keep element types in the reference: (...).astype(x.dtype)")
    if not op.has(Trait.VIEW) and op.alias is None and any(np.shares_memory(a, r) for a in operands for r in results):
        raise VerifyError(
            "the reference returns memory of an operand, but the op is not a VIEW", remedy="return a copy"
        )
    return results


def check_statements(op: OpDef, sample: Sample) -> None:
    """Check the statements of traits and fields about the result. Raise VerifyError where one does not hold."""
    attrs = op.normalize(sample.attrs)
    results = op.evaluate(sample.operands, attrs)
    if op.has(Trait.IDENTITY):
        for result, operand in zip(results, sample.operands, strict=True):
            _expect(result, operand, "Trait.IDENTITY")
    if op.has(Trait.CONVERSION):
        _check_conversion(results[0], sample.operands[0], attrs.get("dtype"))
    if op.permutes is not None:
        _expect(results[0], np.transpose(sample.operands[0], op.permutes(attrs)), "permutes")
    halo = None if op.halo is None else op.halo(attrs)
    if halo is not None:
        widths = list(zip(halo.low, halo.high, strict=True))
        _expect(results[0], np.pad(sample.operands[0], widths or 0, constant_values=halo.value), "halo")
    if op.parts is not None:
        _expect(results[0], _joined(op, sample, results[0]), "parts")


def _check_conversion(result: np.ndarray, operand: np.ndarray, dtype: Any) -> None:
    if not isinstance(dtype, DType):
        raise VerifyError("Trait.CONVERSION does not hold: no attribute 'dtype' names the element type")
    expected = cast(Tensor._wrap(operand), dtype=dtype)._data
    if result.dtype != expected.dtype:
        raise VerifyError(f"Trait.CONVERSION does not hold: the result is {result.dtype}, not {dtype.name}")
    _expect(result, expected, "Trait.CONVERSION")


def _joined(op: OpDef, sample: Sample, result: np.ndarray) -> np.ndarray:
    """Return the operands at their offsets; elsewhere values that differ from the result."""
    assert op.parts is not None
    joined = np.where(result == 0, 1, 0).astype(result.dtype)
    offsets = op.parts(tuple(map(array_type, sample.operands)), op.normalize(sample.attrs))
    for operand, first in zip(sample.operands, offsets, strict=True):
        joined[tuple(np.s_[i : i + n] for i, n in zip(first, operand.shape, strict=True))] = operand
    return joined


def _expect(result: np.ndarray, expected: np.ndarray, statement: str) -> None:
    if result.shape != expected.shape:
        raise VerifyError(
            f"{statement} does not hold: it says {show(expected.shape)}, the result is {show(result.shape)}"
        )
    other = difference("the result", result, expected, EXACT)
    if not other.is_within:
        raise VerifyError(f"{statement} does not hold: the result differs by up to {other.absolute:.3g}")


def is_differentiable(op: OpDef, sample: Sample) -> bool:
    """Return whether finite differences apply to a sample."""
    return sample.differentiable and op.vjp is not None and any(a.dtype.kind in "fc" for a in sample.operands)


def check_gradients(op: OpDef, sample: Sample) -> None:
    """Check first and second derivatives at a sample, in f64.

    Raise GradientError where they differ from finite differences, DTypeError for an op that takes no f64.
    """
    arrays = [_wide_parts(a) for a in sample.operands]

    def function(graph: Graph) -> Sequence[Value]:
        pairs = zip(graph.inputs, sample.operands, strict=True)
        with use(GraphDispatcher(graph)):
            results = emit(
                graph, op, [view_as_complex(v) if a.dtype.kind == "c" else v for v, a in pairs], sample.attrs
            )
            results = results[: sample.attrs.get("results", len(results))]
            return [view_as_real(v) if v.dtype.is_complex else v for v in results]

    try:
        check_derivatives(function, arrays)
    except DTypeError as error:
        raise DTypeError(
            f"finite differences need f64: {error.what}", remedy="pass Sample(..., differentiable=False), or accept f64"
        ) from error


def _wide_parts(array: np.ndarray) -> np.ndarray:
    """Return floats as f64, complex numbers as pairs of f64, each of which is differentiated."""
    if array.dtype.kind == "c":
        return np.stack([np.real(array), np.imag(array)], -1).astype(np.float64)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def check_error(op: OpDef, sample: ErrorSample) -> None:
    """Apply an op wrongly. Raise VerifyError unless that raises the sample's error, with a message that begins with the
    op.
    """
    graph = Graph("wrong")
    operands = [graph.add_input(t, f"x{i}") for i, t in enumerate(sample.types)]
    where = f"{op.name}({', '.join(map(str, sample.types))})"
    try:
        emit(graph, op, operands, sample.attrs)
    except sample.error as error:
        said = error.what.startswith(op.name) or "attribute" in error.what
        if sample.message not in error.what or not said:
            what = f"{op.name}: an error says {error.what!r}, not {sample.message!r} after the name of the op"
            raise VerifyError(what, where=where) from error
        if error.where is None or not error.where.startswith(f"{op.name}("):
            raise VerifyError(f"{op.name}: an error does not name its location: {error.where}", where=where) from error
        return
    raise VerifyError(f"{op.name}: {sample.error.__name__} was expected, but nothing was raised", where=where)
