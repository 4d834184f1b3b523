"""Advice for code that reads the values of a traced tensor, by the construct that reads them."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from types import FrameType

from graphc.base.location import user_frame

OUTSIDE = "or do it outside of the traced function"
_STATIC = "pass a Python number or bool, which is static"
_WHERE = "use graphc.where(condition, a, b), which computes both"
_COND = "use graphc.cond(condition, f, g, operands), which runs one of two functions"
_WHILE = "use graphc.while_loop(condition, body, state), which evaluates its condition in each step"
_FORI = "use graphc.fori_loop(0, n, body, state), whose bounds may be tensors"
_SCAN = "use graphc.scan(f, state, x), which passes one slice after the other to f"
_ASSERT = "use graphc.assert_true(condition, message), which each call of the compiled code checks"
_TENSOR = "use the tensor itself: without dimensions it works like a number in arithmetic and comparisons"
_PRINT = "use graphc.debug(), or a forward hook, which sees the values of each call"
_OPAQUE = "use graphc.opaque(function), which runs Python on the values of each call"
_MASKED = (
    "use graphc.where(mask, x, 0) or x.masked_fill(~mask, 0), which keep the shape; or x.topk(k) for a fixed number"
)
_INDEX = (
    "use x.index_select(dim, index) or graphc.gather, which take tensors; or graphc.switch(index, functions, operands)"
)

_BY_BUILTIN = dict(
    max="use graphc.maximum(a, b), or graphc.stack(list).max()",
    min="use graphc.minimum(a, b), or graphc.stack(list).min()",
    sorted="use graphc.sort, or graphc.argsort and index_select with its result",
    abs="use graphc.abs",
    round="use graphc.round",
    print=_PRINT,
    range=_FORI,
    any="use graphc.stack(list).any()",
    all="use graphc.stack(list).all()",
)
"""Advice for calls of Python's builtin functions, which are not ops."""
_SIZE = "mask the whole tensor with graphc.arange(size) < n: shapes cannot depend on values"
_MATH = "use the graphc function of the same name, such as graphc.sqrt"
_Span = tuple[int, int, int, int]
"""Position of an expression: first line, last line, first column, end column."""


def advice(purpose: str) -> str:
    """Advise what to write instead of the running user code, which needs values for ``purpose``."""
    frame = user_frame()
    construct_advice = _by_construct(_enclosing(frame)) if frame is not None else ""
    return "; ".join(
        clause
        for clause in (construct_advice or _by_purpose(purpose), _other(purpose, construct_advice), OUTSIDE)
        if clause
    )


def _other(purpose: str, construct_advice: str) -> str:
    return _STATIC if purpose.startswith("bool()") and construct_advice not in (_PRINT, _ASSERT) else ""


def _by_purpose(purpose: str) -> str:
    """Return the advice for a kind of read, for code without a known construct."""
    if purpose.startswith("bool()"):
        return f"{_WHERE}; {_COND}"
    if any(name in purpose for name in ("boolean mask", "nonzero()", "masked_select")):
        return _MASKED
    if purpose.startswith("use as a Python int"):
        return _INDEX
    if purpose.startswith(("item()", "float()", "int()")):
        return f"{_TENSOR}; {_COND}"
    if purpose.startswith(("numpy()", "numpy.", "tolist()", "data_ptr()")):
        return f"use operations of graphc; or {_OPAQUE}"
    return _OPAQUE


def _by_construct(nodes: list[ast.AST]) -> str:
    """Return the advice for the innermost enclosing construct that has any."""
    inner: ast.AST | None = None
    for number, node in enumerate(nodes):
        construct_advice = _of_statement(node, inner, nodes[number + 1 :]) or _of_expression(node, inner)
        if construct_advice:
            return construct_advice
        if isinstance(node, (ast.stmt, ast.Lambda)):
            return ""
        inner = node
    return ""


def _of_statement(node: ast.AST, inner: ast.AST | None, outer: list[ast.AST]) -> str:
    if isinstance(node, ast.Assert):
        return _ASSERT
    if isinstance(node, ast.While) and inner is node.test:
        return _WHILE
    if isinstance(node, ast.If) and inner is node.test:
        return _WHILE if _leaves_loop(node, outer) else f"{_WHERE}; {_COND}"
    if isinstance(node, (ast.For, ast.comprehension)) and inner is node.iter:
        return _SCAN
    if isinstance(node, ast.comprehension) and inner in node.ifs:
        return _MASKED
    return ""


def _of_expression(node: ast.AST, inner: ast.AST | None) -> str:
    if isinstance(node, ast.IfExp) and inner is node.test:
        return f"{_WHERE}; {_COND}"
    if isinstance(node, ast.JoinedStr):
        return _PRINT
    if isinstance(node, ast.Slice) or (isinstance(node, ast.Subscript) and inner is None and _is_sliced(node)):
        return _SIZE
    if isinstance(node, ast.Call) and inner is not node.func:
        return _of_call(node)
    if isinstance(node, ast.Compare) and any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops):
        return f"take (x == value).any() as the condition: {_WHERE}; {_COND}"
    return ""


def _is_sliced(node: ast.Subscript) -> bool:
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(isinstance(index, ast.Slice) for index in indices)


def _of_call(node: ast.Call) -> str:
    if isinstance(node.func, ast.Name):
        return _BY_BUILTIN.get(node.func.id, "")
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        return _MATH if node.func.value.id == "math" else ""
    return ""


def _leaves_loop(node: ast.If, outer: list[ast.AST]) -> bool:
    """Return whether the branch leaves an enclosing loop."""
    if not any(isinstance(other, (ast.For, ast.While)) for other in outer):
        return False
    return any(isinstance(inner, (ast.Break, ast.Return)) for statement in node.body for inner in ast.walk(statement))


def _enclosing(frame: FrameType) -> list[ast.AST]:
    """Return the syntax nodes around the running expression, innermost first; empty without source."""
    span = _span_of(frame)
    lines = linecache.getlines(frame.f_code.co_filename)
    if span is None or not lines:
        return []
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return []
    return list(_path(tree, span))[::-1]


def _span_of(frame: FrameType) -> _Span | None:
    """Return the position of the running instruction in the source."""
    positions = list(frame.f_code.co_positions())
    line, last, column, end = positions[frame.f_lasti // 2]
    if line is None or last is None or column is None or end is None:
        return None
    return line, last, column, end


def _path(tree: ast.AST, span: _Span) -> Iterator[ast.AST]:
    """Yield the nodes that enclose a position, outermost first."""
    line, last, column, end = span
    node: ast.AST | None = tree
    while node is not None:
        yield node
        node = next((child for child in ast.iter_child_nodes(node) if _holds(child, line, column, last, end)), None)


def _holds(node: ast.AST, line: int, column: int, last: int, end: int) -> bool:
    if isinstance(node, ast.comprehension):
        return any(_holds(inner, line, column, last, end) for inner in (node.target, node.iter, *node.ifs))
    if isinstance(node, ast.match_case):
        return any(_holds(inner, line, column, last, end) for inner in (node.guard, *node.body) if inner is not None)
    if not isinstance(node, (ast.stmt, ast.expr, ast.excepthandler)):
        return False
    start, stop = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
    return start <= (line, column) and (last, end) <= stop
