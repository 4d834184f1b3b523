"""The table: every op that it has, by the samples of its definition, and every op that it has not, by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from graphc.base.dtypes import layout_of
from graphc.base.errors import UnsupportedError
from graphc.interop.onnx_export.export import graph_record
from graphc.interop.onnx_export.protobuf import write
from graphc.interop.onnx_export.table import ENTRIES, RULES, call_rules
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph
from graphc.ir.op import REGISTRY, Sample, Trait
from graphc.ir.types import TensorType
from tests.interop.onnx_export.runtimes import by_reference, by_runtime, distance

OPSET = 21
NEAR = 2e-6
"""Samples are of few elements, some of which are differences."""
LARGE = 100
ORDINARY = {
    "floor_div": "infinities, and whole numbers of which the remainder overflows",
    "sign": "NaN, whose sign is NaN",
    "cast": "floats that no whole number is near to",
    "pow": "whole numbers whose powers overflow, or whose exponents are negative",
    "atan2": "infinities and zeros with a sign",
    "hypot": "two infinities",
    "scatter_extreme": "NaN",
    "max_pool": "NaN",
    "part_sum": "infinities and NaN, which are multiplied by 0",
    "sum": "whole numbers whose sum overflows",
    "max": "NaN",
    "min": "NaN",
    "argmax": "NaN",
    "argmin": "NaN",
    "quantize_linear": "NaN",
    "xlogy": "infinities",
    "xlog1py": "infinities",
}
"""Ops of which runtimes compute something else for extreme elements, and which: samples with those are left out."""
NOT_IN_REFERENCE = {
    "conv_grad_input": "the reference of ConvTranspose knows no groups",
    "scan": "the reference of Scan goes in one direction, and makes one step or more",
}
NEEDLESS = {
    *("bf16_pairs", "i8_quads", "quad_matmul", "masked_matmul", "nibble_matmul", "nibble_quad_matmul", "group_matmul"),
    *("byte_quads", "quad_conv", "byte_pairs", "pair_matmul", "pair_conv"),
    *("winograd_input", "winograd_weight", "winograd_output", "update_slice"),
}
"""Ops that passes make, and no trace."""
REFUSED = {
    *("random_bits", "exact_log", "exact_exp", "exact_cosine", "exact_sine"),  # random numbers
    *("state_write", "host_call", "statistics"),  # effects, and what observes values
    *("max_pool_grad", "max_pool_pick"),  # gradients
    "bitcast",  # BitCast of version 26, which no runtime has
    *("complex", "real", "imag", "conj", "view_as_complex", "view_as_real", "dft", "rdft", "irdft"),  # complex numbers
    *("cholesky", "lu", "qr", "eigh", "solve", "solve_triangular"),  # matrices
    "descend",  # of trees, which files describe otherwise
    "suppress",  # its result has another form than NonMaxSuppression's
    *("merge_runs", "sort_lines"),  # of sorting, which runtimes do themselves
}


def _is_ordinary(sample: Sample) -> bool:
    arrays = [np.asarray(a) for a in sample.operands]
    numbers = [a.astype(np.float64) for a in arrays if a.dtype.kind in "fiu"]
    if any(a.dtype.kind == "i" and np.any(a == np.iinfo(a.dtype).min) for a in arrays):
        return False
    return all(np.all(np.abs(a) < LARGE) for a in numbers)


def _samples(name: str) -> Iterator[tuple[Graph, list[np.ndarray], tuple[np.ndarray, ...]]]:
    """Graphs of one op, operands and results."""
    op = REGISTRY[name]
    for sample in op.samples() if op.samples else ():
        if name in ORDINARY and not _is_ordinary(sample):
            continue
        arrays = [np.asarray(a) for a in sample.operands]
        graph = Graph(name)
        operands = [graph.add_input(TensorType(layout_of(a.dtype), a.shape), f"x{i}") for i, a in enumerate(arrays)]
        graph.set_outputs(emit(graph, op, operands, sample.attrs))
        yield graph, arrays, op.evaluate(arrays, op.normalize(sample.attrs))


def _written(graph: Graph, path: Path) -> Path | None:
    """The file; None of complex numbers where operators of ONNX do not take them. All other types are taken."""
    names = [f"y{i}" for i in range(len(graph.outputs))]
    try:
        write(path, graph_record(graph, {}, names, OPSET, lambda graph: ()), OPSET, {})
    except UnsupportedError:
        assert any(v.dtype.is_complex for v in (*graph.inputs, *graph.outputs))
        return None
    return path


@pytest.mark.parametrize("name", sorted(RULES))
def test_an_op_computes_what_its_reference_does(name: str, tmp_path: Path):
    count = 0
    for graph, arrays, expected in _samples(name):
        path = _written(graph, tmp_path / "op.onnx")
        if path is None:
            continue
        try:
            result = by_reference(path, arrays)
        except (RuntimeError, ValueError):
            assert name in NOT_IN_REFERENCE, "the reference of onnx fails"
            continue
        assert distance(result, expected) < NEAR
        count += 1
    assert count


@pytest.mark.parametrize("name", sorted(RULES))
def test_an_op_runs_in_onnxruntime(name: str, tmp_path: Path):
    ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    absent = ort.capi.onnxruntime_pybind11_state.NotImplemented
    count = 0
    for graph, arrays, expected in _samples(name):
        path = _written(graph, tmp_path / "op.onnx")
        if path is None:
            continue
        if 0 in [n for a in arrays for n in a.shape]:
            continue  # of empty tensors some of its operators are afraid
        try:
            result = by_runtime(path, arrays)
        except absent:
            continue  # for f64 and for whole numbers of 8 bits it has few operators
        assert distance(result, expected) < NEAR
        count += 1
    assert count


def test_every_op_has_a_rule_or_is_composed_of_ops_that_have_or_is_known_to_have_none():
    without = {
        name
        for name, op in REGISTRY.items()
        if name not in RULES and not op.module and op.decompose is None and name != "constant"
        if not op.has(Trait.IDENTITY) and not op.has(Trait.CHECK)
    }
    assert without == REFUSED | NEEDLESS - {name for name in NEEDLESS if REGISTRY[name].decompose is not None}


def test_lists_of_exceptions_name_ops_of_the_table():
    assert (ORDINARY.keys() | NOT_IN_REFERENCE.keys()) <= RULES.keys()


def test_functions_are_operators_from_the_opset_on_that_has_them():
    assert len({e.function for e in ENTRIES}) == len(ENTRIES)
    later = {e.operator for e in ENTRIES if e.function in call_rules(23).keys() - call_rules(20).keys()}
    assert later == {"Attention", "RMSNormalization"}
