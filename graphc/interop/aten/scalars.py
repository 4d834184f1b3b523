"""Rules of operators on sizes and numbers, which programs with symbolic sizes compute with."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

from graphc.base.errors import AttributeValueError, UnsupportedError
from graphc.base.sizes.size import SizeNumber, is_size, larger, root, smaller
from graphc.interop.aten.registry import TABLE, rule
from graphc.tensors.tensor import Tensor
from graphc.tracing.trace import is_tracing


@rule("sym_size.int")
def sym_size(self: Tensor, dim: int) -> Any:
    return self.shape[dim]


@rule("sym_numel")
def sym_numel(self: Tensor) -> Any:
    return self.numel()


@rule("sym_stride.int")
def sym_stride(self: Tensor, dim: int) -> Any:
    return self.stride(dim)


@rule("sym_storage_offset")
def sym_storage_offset(self: Tensor) -> int:
    return 0


@rule("_assert_async", "_assert_async.msg", "_assert_scalar")
def assert_true(self: Any, assert_msg: str = "") -> None:
    """Raise AttributeValueError where an assertion of the model fails.

    Raises UnsupportedError for a tensor in compiled code, which cannot raise.
    """
    if isinstance(self, Tensor) and is_tracing():
        raise UnsupportedError("an assertion on values in compiled code", remedy="remove the assertion from the model")
    if not bool(self):
        raise AttributeValueError(f"an assertion of the model fails: {assert_msg}"[:300])


@rule("sym_constrain_range_for_size", "sym_constrain_range")
def constrain_range(*_: Any, **__: Any) -> None:
    """Ignore PyTorch's ranges of sizes: graphc derives its own."""


@rule("_assert_tensor_metadata")
def assert_metadata(*_: Any, **__: Any) -> None:
    """Ignore the assertion: the graph was made for these shapes and element types."""


def _not(value: Any) -> bool:
    return not value


def _max(*values: Any) -> Any:
    return functools.reduce(larger, values)


def _min(*values: Any) -> Any:
    return functools.reduce(smaller, values)


def _choose(condition: Any, yes: Any, no: Any) -> Any:
    return yes if condition else no


def _float(value: Any) -> Any:
    """Convert to a float. Symbolic sizes are divided by 1, since a float would be the size of one call."""
    return value / 1 if is_size(value) else value if isinstance(value, SizeNumber) else float(value)


TABLE["operator.getitem"] = operator.getitem
for _name in [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "neg",
    "pow",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "and_",
    "or_",
    "abs",
]:
    TABLE[f"operator.{_name}"] = getattr(operator, _name)
for _name in ("ceil", "floor", "trunc"):
    TABLE[f"math.{_name}"] = getattr(math, _name)
TABLE |= {
    "torch.sym_not": _not,
    "math.sqrt": root,
    "torch._sym_sqrt": root,
    "torch.sym_float": _float,
    "builtins.round": round,
    "torch.sym_int": int,
    "torch.sym_max": _max,
    "torch.sym_min": _min,
    "torch.sym_sum": sum,
    "torch.sym_ite": _choose,
}
