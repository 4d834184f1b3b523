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
    """Register a custom op and return the function that applies it.

    ``f(*tensors, **attrs)`` runs eagerly, is traced, compiled, differentiated and mapped as any other op;
    docs/extending.md shows one.

    ``operands`` are the operand names separated by blanks (a last ``*name`` is variadic); ``infer(*types, **attrs)`` is
    the type rule, which raises ShapeError or DTypeError. ``rules`` are the other arguments of
    ``graphc.ops.define.define``. Required are

    - ``reference(*arrays, **attrs)``: its meaning in numpy, which also runs eagerly;
    - ``lower(c, index, *operands, **attrs)``, the element of the result at an index as scalar operations; or
      ``lower_nest``; or ``decompose(*operands, **attrs)``, the result by other ops;
    - ``vjp``, one rule ``(g, result, *operands, **attrs)`` per operand, written in ops, if the op has a gradient.

    A module that runs again (an edited cell of a notebook) replaces its own ops: programs compiled with the old op keep
    it, and graphs that contain it are rejected. The disk cache identifies code of graphs with such ops by the kernels
    which the rules produce. A model file names its custom ops, but does not contain them.

    Raises ArgumentError for a bad name or a missing rule, VerifyError for a name already in use.
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
