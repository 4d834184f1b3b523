"""``define_op``: register an op from a user's file, by the same ``define`` as the ops of graphc."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.ir.graph.graph import Value
from graphc.ops import registry
from graphc.ops.define import OpFunction, define

assert registry.FAMILIES, "a user's op is defined after all others, so that it cannot take their names"


def define_op(name: str, doc: str, operands: str, infer: Callable[..., Any], **rules: Any) -> OpFunction:
    """Register a custom op and return the function that applies it, ``f(*tensors, **attrs)``.

    The op runs eagerly, is traced, compiled, differentiated and mapped as any other; docs/extending.md has more on
    notebooks, caches and model files.

    Args:
        name: a Python identifier.
        doc: description of the op.
        operands: operand names separated by blanks; a last ``*name`` is variadic.
        infer: type rule ``infer(*types, **attrs)``, which raises ShapeError or DTypeError.
        rules: further arguments of ``graphc.ops.define.define``. ``reference(*arrays, **attrs)`` computes the op in
            numpy. ``lower(c, index, *operands, **attrs)`` returns an element of the result as scalar operations;
            ``lower_nest`` or ``decompose(*operands, **attrs)``, the result by other ops, replaces it. ``vjp`` has one
            gradient rule ``(g, result, *operands, **attrs)`` per operand, written in ops.

    Returns:
        The function.

    Raises:
        ArgumentError: a bad name or a missing rule.
        VerifyError: a name already in use.

    Example:
        >>> import graphc as gc
        >>> from graphc.ops.pointwise.elementwise import mul
        >>> from graphc.ops.rules import elementwise
        >>> cube = gc.define_op(
        ...     "cube", "x^3.", "x", elementwise("cube", "f"),
        ...     reference=lambda x: x**3,
        ...     decompose=lambda x: mul(mul(x, x), x),
        ...     vjp=(lambda g, result, x: mul(g, mul(mul(x, x), 3.0)),),
        ... )
        >>> gc.func.grad(cube)(gc.tensor(2.0))
        tensor(12.)
    """
    if not name.isidentifier():
        raise ArgumentError(f"define_op: {name!r} is not a valid name", remedy="use letters, digits and underscores")
    if rules.get("reference") is None:
        raise ArgumentError(
            f"define_op: {name} has no reference", remedy="pass reference=lambda x: ..., a function of numpy arrays"
        )
    if not any(rules.get(rule) for rule in _COMPILED_BY):
        raise ArgumentError(
            f"define_op: {name} cannot be compiled: it has none of {', '.join(_COMPILED_BY)}",
            remedy="pass decompose=lambda x: ..., written in other ops",
        )
    for rule in ("vjp", "jvp", "decompose"):
        rules[rule] = _written_in_ops(name, rule, rules.get(rule))
    caller = sys._getframe(1).f_globals.get("__name__") or "__main__"
    return define(name, doc, operands, infer, **rules, module=caller)


_COMPILED_BY = ("lower", "lower_nest", "decompose")
_OPERATORS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "**": "pow", "@": "matmul", "<": "lt", ">": "gt"}
"""Ops that compute Python's operators."""


def _written_in_ops(name: str, kind: str, rule: Any) -> Any:
    """Wrap a rule, or a tuple of rules, so that methods and operators of tensors in it end in an error with a remedy.

    Eager mode runs rules on tensors, and the compiler runs the same rules on values of graphs, which only ops take.
    """
    if isinstance(rule, tuple):
        return tuple(_written_in_ops(name, kind, r) for r in rule)
    if rule is None:
        return None

    @functools.wraps(rule)
    def run(*operands: Any, **attrs: Any) -> Any:
        try:
            return rule(*operands, **attrs)
        except (AttributeError, TypeError) as error:
            used = _tensor_syntax(error)
            if used is None:
                raise
            raise ArgumentError(
                f"define_op: the rule {kind} of {name} uses {used[0]}, which values of graphs do not have",
                remedy=f"write it in ops: {_call_of(used[1])}",
            ) from error

    return run


def _tensor_syntax(error: AttributeError | TypeError) -> tuple[str, str] | None:
    """Return the method or operator that a graph value lacks, and the name of its op; None for other errors."""
    if isinstance(error, AttributeError):
        return (f"x.{error.name}", error.name or "") if isinstance(error.obj, Value) else None
    symbol = re.match(
        r"(?:bad operand type for unary (\S+):|unsupported operand type\(s\) for ([^ (:]+)|'(\S+)' not)", str(error)
    )
    if symbol is None or "'Value'" not in str(error):
        return None
    operator = symbol[1] or symbol[2] or symbol[3]
    return f"the operator {operator}", "neg" if symbol[1] else _OPERATORS.get(operator, operator)


def _call_of(name: str) -> str:
    """Say how to import and call an op; without one of this name, where the ops are listed."""
    for family in registry.FAMILIES:
        for attribute, function in vars(family).items():
            if isinstance(function, OpFunction) and function.op.name == name:
                return f"from {family.__name__} import {attribute}, then {attribute}({', '.join(function.op.operands)})"
    return "docs/ops.md lists them"
