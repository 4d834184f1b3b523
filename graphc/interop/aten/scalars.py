"""Operators on sizes and numbers, which programs with sizes known at run time compute with."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from graphc.base.errors import AttributeValueError, UnsupportedError
from graphc.base.sizes.size import SizeNumber, is_size, root
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
    """Raises AttributeValueError where a value or number is not as the model asserts, and UnsupportedError for a value
    in compiled code, which has no step that raises."""
    if isinstance(self, Tensor) and is_tracing():
        raise UnsupportedError("an assertion on values in compiled code", remedy="a model without the assertion")
    if not bool(self):
        raise AttributeValueError(f"what the model asserts does not hold: {assert_msg}"[:300])


@rule("sym_constrain_range_for_size", "sym_constrain_range")
def constrain_range(*_: Any, **__: Any) -> None:
    """What PyTorch has found out about its sizes; graphc asks for what it needs itself."""


@rule("_assert_tensor_metadata")
def assert_metadata(*_: Any, **__: Any) -> None:
    """Shapes and element types are those that the graph was made for."""


def _not(value: Any) -> bool:
    return not value


def _max(*values: Any) -> Any:
    found: Sequence[Any] = values
    return max(found)


def _min(*values: Any) -> Any:
    found: Sequence[Any] = values
    return min(found)


def _choose(condition: Any, yes: Any, no: Any) -> Any:
    return yes if condition else no


def _float(value: Any) -> Any:
    """A quotient by 1 of sizes, for the number itself would be that of one call."""
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
