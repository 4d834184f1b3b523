"""Tensor methods of PyTorch with one answer here, since tensors are dense, and those that call a Python function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.dtypes import elements, numbers
from graphc.base.lazy import deferred
from graphc.base.sizes.extents import Size
from graphc.tensors.tensor_base import TensorBase, front, need_tensor

if TYPE_CHECKING:
    from graphc.tensors.tensor import Tensor

_bernoulli, _empty_strided = (
    deferred(f"graphc.tensors.{name}") for name in ("creation:bernoulli", "sources:empty_strided")
)
_multinomial = deferred("graphc.tensors.free_functions:multinomial")
_prelu, _hardshrink = (deferred(f"graphc.nn.functional:{name}") for name in ("prelu", "hardshrink"))


def _no(of: str) -> Any:
    return property(lambda self: False, doc=f"False: no tensor is {of}.")


class Questions(TensorBase):
    """What is asked of tensors, and old ways to make and change them."""

    is_sparse, is_sparse_csr, is_quantized, is_nested = map(_no, ("sparse", "compressed", "quantized", "nested"))
    is_meta, is_mkldnn, is_mps, is_xpu = map(_no, ("without memory", "opaque", "on a device of mps", "on one of xpu"))
    is_xla, is_vulkan, is_ipu, is_maia, is_mtia = map(
        _no, (f"on one of {n}" for n in ["xla", "vulkan", "ipu", "maia", "mtia"])
    )

    @property
    def name(self) -> None:
        """None: tensors have no name of their own."""

    @property
    def output_nr(self) -> int:
        """Which result of its operation the tensor is."""
        return self._index

    def to_dense(self, dtype: Any = None) -> Tensor:
        """This tensor, as another element type where one is given."""
        return self if dtype is None else self.to_dtype(dtype)  # type: ignore[attr-defined, return-value]

    def is_distributed(self) -> bool:
        """False: a tensor lies in one place."""
        return False

    def is_nonzero(self) -> bool:
        """Whether the only element is not zero."""
        return bool(self)

    def narrow_copy(self, dim: int, start: int, length: int) -> Tensor:
        """A copy of what ``narrow`` gives."""
        return self.narrow(dim, start, length).clone()  # type: ignore[attr-defined]

    def is_set_to(self, tensor: Tensor) -> bool:
        """Whether another tensor has the same memory, shape and strides."""
        mine, other = (front().layout(t).__array_interface__ for t in (self, tensor))
        return all(mine[key] == other[key] for key in ("data", "shape", "strides"))

    def dim_order(self) -> tuple[int, ...]:
        """The dimensions by their steps in memory, the largest first."""
        steps = front().layout(self).strides
        return tuple(sorted(range(self.ndim), key=lambda d: -abs(steps[d])))

    def as_subclass(self, cls: type) -> Any:
        """This tensor, its memory and its place in the graph, as an object of a subclass."""
        found = self.view(self.shape)  # type: ignore[attr-defined]
        found.__class__ = cls
        return found

    def new(self, *args: Any) -> Tensor:
        """The old form of ``new_tensor``, for data, and of ``new_empty``, for sizes."""
        if len(args) == 1 and not isinstance(args[0], (int, Size)):
            return self.new_tensor(args[0])  # type: ignore[attr-defined]
        return self.new_empty(*args or (0,))  # type: ignore[attr-defined]

    def new_empty_strided(
        self, size: Sequence[int], stride: Sequence[int], dtype: Any = None, **options: Any
    ) -> Tensor:
        """Elements of this type with any value, and with given steps in memory."""
        options.setdefault("device", self.device)  # type: ignore[attr-defined]
        return _empty_strided(size, stride, dtype=self.dtype if dtype is None else dtype, **options)

    # ---- Python functions of elements

    def apply_(self, callable: Callable[[Any], Any]) -> Tensor:
        """In place: what a Python function returns for each element, one after the other; needs values."""
        return self._mapped("apply_()", callable)

    def map_(self, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
        """In place: what a Python function returns for each pair of elements; needs values."""
        return self._mapped("map_()", callable, tensor)

    def map2_(self, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
        """In place: what a Python function returns for each three elements; needs values."""
        return self._mapped("map2_()", callable, x, y)

    def _mapped(self, name: str, function: Callable[..., Any], *others: Any) -> Any:
        need_tensor(name, *others)
        given = [front().values(t, name) for t in (self, *others)]
        arrays = [np.broadcast_to(numbers(a), self.shape).ravel().tolist() for a in given]
        found = elements([function(*items) for items in zip(*arrays, strict=True)], self.dtype)
        return self.copy_(front().constant(found.reshape(self.shape)))  # type: ignore[attr-defined]

    # ---- methods of functions that lie elsewhere

    def bernoulli(self, *, generator: Any = None) -> Tensor:
        """1 with the probability that each element states, else 0."""
        return _bernoulli(self, generator=generator)

    def multinomial(self, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Tensor:
        """Indices drawn with probabilities in proportion to the elements of each row."""
        return _multinomial(self, num_samples, replacement, generator=generator)

    def prelu(self, weight: Tensor) -> Tensor:
        """Elements below 0 times ``weight``, one number or one for each channel."""
        return _prelu(self, weight)

    def hardshrink(self, lambd: float = 0.5) -> Tensor:
        """0 where elements lie between ``-lambd`` and ``lambd``."""
        return _hardshrink(self, lambd)
