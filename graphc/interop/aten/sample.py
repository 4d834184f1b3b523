"""Applications of ATen operators with known results: how a rule differs, and cases to attach to a bug report."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np

from graphc.base.difference import difference
from graphc.base.dtypes import BY_NAME
from graphc.base.errors import ArtifactError
from graphc.checks.check_case import OPERATOR, write_case
from graphc.checks.pass_check import Fault
from graphc.checks.pass_points import Point
from graphc.interop.aten.graph import AtenGraph, Ref, Step, refs
from graphc.interop.aten.run import Runner
from graphc.ir.graph.graph import Graph
from graphc.tape.grad_mode import no_grad
from graphc.tensors.placement import on_host
from graphc.tensors.tensor import Tensor


def differing(actual: Any, expected: np.ndarray) -> str:
    """Describe how an array differs from the expected one. Empty where it is within tolerance."""
    comparison = difference("", np.asarray(actual), expected, same_dtype=True)
    return "" if comparison.is_within else str(comparison)


def fault_of(step: Step, values: Mapping[str, np.ndarray], expected: Sequence[np.ndarray | None]) -> str:
    """Describe how the rule of an operator differs from the expected results for these values of its Refs.

    ``expected`` has one entry for each result. Empty where the rule does not differ.
    """
    names = list(dict.fromkeys(refs((step.args, step.kwargs))))
    operands = [Tensor._wrap(np.array(values[n])) for n in names]
    try:
        with no_grad():
            actual = Runner(AtenGraph("main", names, [step], Ref(step.name)))(*operands)
    # NOTE: any exception of a rule is the fault to report.
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    results = actual if isinstance(actual, (list, tuple)) else [actual]
    for i, (ours, theirs) in enumerate(zip(results, expected, strict=False)):
        if (
            isinstance(ours, Tensor)
            and theirs is not None
            and (what := differing(on_host(ours.detach()._data), theirs))
        ):
            return f"result {i}: {what}"
    return ""


def written(step: Step, values: Mapping[str, np.ndarray], expected: Sequence[np.ndarray | None], what: str) -> Path:
    """Write a case that shows the results of an operator's rule, in a new temporary folder. Return its path.

    Results that are not tensors are left out.
    """
    names = dict.fromkeys(refs((step.args, step.kwargs)))
    arguments = tuple(np.asarray(values[n]) for n in names)
    text = f"Step({step.name!r}, {step.target!r}, {step.args!r}, {dict(step.kwargs)!r})"
    fault = Fault(OPERATOR, Point(OPERATOR, 0, step.target), what, "", Graph("operator"), arguments)
    tensors = {i: e for i, e in enumerate(expected) if e is not None}
    return write_case(fault, expected=list(tensors.values()), operator=f"{list(tensors)}, {text}")


def operator_fault(text: str, arguments: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> str:
    """Describe how the rule of an operator in a case differs from PyTorch's results now; see ``fault_of``."""
    try:
        indices, step = _literal(ast.parse(text, mode="eval").body)
        values = dict(zip(dict.fromkeys(refs((step.args, step.kwargs))), arguments, strict=True))
        expected = dict(zip(indices, results, strict=True))
    except (ValueError, TypeError, AttributeError, SyntaxError) as error:
        raise ArtifactError(f"the case is damaged: {error}") from None
    return fault_of(step, values, [expected.get(i) for i in range(1 + max(expected, default=-1))])


_CALLS = {"Ref": Ref, "Step": Step, "slice": slice}
_NAMES = {"inf": inf, "nan": nan}


def _literal(node: ast.expr) -> Any:
    """Return the value of an expression of literals, Refs, slices and element types; evaluate nothing else.

    Raise ValueError for any other expression.
    """
    match node:
        case ast.List():
            return [_literal(e) for e in node.elts]
        case ast.Tuple():
            return tuple(_literal(e) for e in node.elts)
        case ast.Dict():
            return {_literal(k): _literal(v) for k, v in zip(node.keys, node.values, strict=True) if k is not None}
        case ast.Call(func=ast.Name(id=name)) if name in _CALLS:
            named = {k.arg: _literal(k.value) for k in node.keywords if k.arg}
            return _CALLS[name](*[_literal(a) for a in node.args], **named)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Name()):
            return -_literal(node.operand)
        case ast.Name(id=name) if name in _NAMES:
            return _NAMES[name]
        case ast.Attribute(value=ast.Name(id="graphc"), attr=name) if name in BY_NAME:
            return BY_NAME[name]
    return ast.literal_eval(node)
