"""``define_op``: register an op from a user's file, by the same ``define`` as the ops of graphc."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from graphc.base.errors import ArgumentError
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
    caller = sys._getframe(1).f_globals.get("__name__") or "__main__"
    return define(name, doc, operands, infer, **rules, module=caller)


_COMPILED_BY = ("lower", "lower_nest", "decompose")
