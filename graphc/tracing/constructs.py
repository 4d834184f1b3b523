"""What code that asks for the values of a traced tensor can say instead, by the construct in which it asks."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from types import FrameType

from graphc.base.location import user_frame

OUTSIDE = "or do it outside of the traced function"
_STATIC = "a Python number or bool argument, which is static"
_WHERE = "graphc.where(condition, a, b), which computes both"
_COND = "graphc.cond(condition, f, g, operands), which runs one of two functions"
_WHILE = "graphc.while_loop(condition, body, state), whose condition is looked at in each step"
_FORI = "graphc.fori_loop(0, n, body, state), whose bounds may be tensors"
_SCAN = "graphc.scan(f, state, x), whose function gets one slice after the other"
_ASSERT = "graphc.assert_true(condition, message), which each call of the compiled code checks"
_TENSOR = "the tensor itself: one without dimensions does in arithmetic and comparisons what a number does"
_PRINT = "graphc.debug(), or a forward hook, which sees the values of each call"
_OPAQUE = "graphc.opaque(function), which runs Python on the values of each call"
_MASKED = "graphc.where(mask, x, 0) or x.masked_fill(~mask, 0), which keep the shape; x.topk(k) for a fixed number"
_INDEX = "x.index_select(dim, index) or graphc.gather, which take tensors; graphc.switch(index, functions, operands)"

_BY_BUILTIN = dict(
    max="graphc.maximum(a, b), or graphc.stack(list).max()",
    min="graphc.minimum(a, b), or graphc.stack(list).min()",
    sorted="graphc.sort or graphc.argsort, and index_select with the order",
    abs="graphc.abs",
    round="graphc.round",
    print=_PRINT,
    range=_FORI,
    any="graphc.stack(list).any()",
    all="graphc.stack(list).all()",
)
"""Functions of Python, which are no ops."""
_SIZE = "a mask over all of it, graphc.arange(size) < n, since shapes cannot depend on values"
_MATH = "the function of graphc of the same name, such as graphc.sqrt"
_Place = tuple[int, int, int, int]
"""Where an expression stands: first line, last line, first column, end column."""


def advice(purpose: str) -> str:
    """What to write in the place of the user's code that runs now, for which ``purpose`` needs values."""
    frame = user_frame()
    found = _by_construct(_enclosing(frame)) if frame is not None else ""
    return "; ".join(part for part in (found or _by_purpose(purpose), _other(purpose, found), OUTSIDE) if part)


def _other(purpose: str, found: str) -> str:
    return _STATIC if purpose.startswith("bool()") and found not in (_PRINT, _ASSERT) else ""


def _by_purpose(purpose: str) -> str:
    """Where the construct is not known: what takes the place of asking so."""
    if purpose.startswith("bool()"):
        return f"{_WHERE}; {_COND}"
    if "boolean mask" in purpose or purpose.startswith(("nonzero()", "masked_select")):
        return _MASKED
    if purpose.startswith("use as a Python int"):
        return _INDEX
    if purpose.startswith(("item()", "float()", "int()")):
        return f"{_TENSOR}; {_COND}"
    if purpose.startswith(("numpy()", "numpy.", "tolist()", "data_ptr()")):
        return f"operations of graphc; {_OPAQUE}"
    return _OPAQUE


def _by_construct(nodes: list[ast.AST]) -> str:
    """By what stands around the expression, innermost first."""
    inner: ast.AST | None = None
    for number, node in enumerate(nodes):
        found = _of_statement(node, inner, nodes[number + 1 :]) or _of_expression(node, inner)
        if found:
            return found
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
        return f"(x == value).any() as the condition of {_WHERE}; {_COND}"
    return ""


def _is_sliced(node: ast.Subscript) -> bool:
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(isinstance(part, ast.Slice) for part in parts)


def _of_call(node: ast.Call) -> str:
    if isinstance(node.func, ast.Name):
        return _BY_BUILTIN.get(node.func.id, "")
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        return _MATH if node.func.value.id == "math" else ""
    return ""


def _leaves_loop(node: ast.If, outer: list[ast.AST]) -> bool:
    """Whether the branch ends a loop around it."""
    if not any(isinstance(other, (ast.For, ast.While)) for other in outer):
        return False
    return any(isinstance(part, (ast.Break, ast.Return)) for statement in node.body for part in ast.walk(statement))


def _enclosing(frame: FrameType) -> list[ast.AST]:
    """The syntax around what the frame runs now, innermost first; empty where the source is not known."""
    place = _place_of(frame)
    lines = linecache.getlines(frame.f_code.co_filename)
    if place is None or not lines:
        return []
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return []
    return list(_path(tree, place))[::-1]


def _place_of(frame: FrameType) -> _Place | None:
    """Where the running instruction stands."""
    positions = list(frame.f_code.co_positions())
    line, last, column, end = positions[frame.f_lasti // 2]
    if line is None or last is None or column is None or end is None:
        return None
    return line, last, column, end


def _path(tree: ast.AST, place: _Place) -> Iterator[ast.AST]:
    """The nodes that hold a place, outermost first."""
    line, last, column, end = place
    node: ast.AST | None = tree
    while node is not None:
        yield node
        node = next((child for child in ast.iter_child_nodes(node) if _holds(child, line, column, last, end)), None)


def _holds(node: ast.AST, line: int, column: int, last: int, end: int) -> bool:
    if isinstance(node, ast.comprehension):
        return any(_holds(part, line, column, last, end) for part in (node.target, node.iter, *node.ifs))
    if isinstance(node, ast.match_case):
        return any(_holds(part, line, column, last, end) for part in (node.guard, *node.body) if part is not None)
    if not isinstance(node, (ast.stmt, ast.expr, ast.excepthandler)):
        return False
    start, stop = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
    return start <= (line, column) and (last, end) <= stop
