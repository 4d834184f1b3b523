"""``define_op``: an op of a user's file, by the same ``define`` as those of graphc."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.ops import registry
from graphc.ops.define import OpFunction, define

assert registry.FAMILIES, "an op of a user comes after all others, so that it cannot take their names"


def define_op(name: str, doc: str, operands: str, infer: Callable[..., Any], **rules: Any) -> OpFunction:
    """Registers an op of one's own and returns the function that applies it: ``f(*tensors, **attrs)`` computes at once,
    is traced, compiled, differentiated and mapped as any other op. docs/extending.md shows one.

    ``operands`` are the operand names separated by blanks (a last ``*name`` is variadic); ``infer(*types, **attrs)`` is
    the type rule, which raises ShapeError or DTypeError. ``rules`` are the other arguments of
    ``graphc.ops.define.define``, of which it needs

    - ``reference(*arrays, **attrs)``: its meaning in numpy, which is also what runs eagerly;
    - ``lower(c, index, *operands, **attrs)``, the element of the result at an index as scalar operations; or
      ``lower_nest``; or ``decompose(*operands, **attrs)``, the result by other ops;
    - ``vjp``, one rule ``(g, result, *operands, **attrs)`` per operand, written in ops, where it has a gradient.

    A module that runs again (an edited cell of a notebook) replaces its own ops: what was compiled with the old one
    stays as it is, and graphs that hold it are refused. In the disk cache, code of graphs with such ops is found by the
    kernels that the rules lead to. A model file names the ops that it needs, and does not hold them.

    Raises ArgumentError for a bad name and where a rule is missing, VerifyError for a name that is taken.
    """
    if not name.isidentifier():
        raise ArgumentError(f"define_op: {name!r} is no name of an op", remedy="letters, digits and underscores")
    if rules.get("reference") is None:
        raise ArgumentError(f"define_op: {name} has no reference", remedy="reference=lambda x: ..., on numpy arrays")
    if not any(rules.get(rule) for rule in _COMPILED_BY):
        raise ArgumentError(
            f"define_op: {name} cannot be compiled: it has none of {', '.join(_COMPILED_BY)}",
            remedy="decompose=lambda x: ..., by other ops",
        )
    caller = sys._getframe(1).f_globals.get("__name__") or "__main__"
    return define(name, doc, operands, infer, **rules, module=caller)


_COMPILED_BY = ("lower", "lower_nest", "decompose")
