"""Tensor methods with a fixed answer for dense tensors, and methods that call Python functions on elements."""

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
    return property(lambda self: False, doc=f"Always False: no tensor is {of}.")


class Questions(TensorBase):
    """Properties with fixed answers, and old ways to create and change tensors."""

    is_sparse, is_sparse_csr, is_quantized, is_nested = map(_no, ("sparse", "compressed", "quantized", "nested"))
    is_meta, is_mkldnn, is_mps, is_xpu = map(_no, ("without memory", "opaque", "on a device of mps", "on one of xpu"))
    is_xla, is_vulkan, is_ipu, is_maia, is_mtia = map(
        _no, (f"on one of {n}" for n in ["xla", "vulkan", "ipu", "maia", "mtia"])
    )

    @property
    def name(self) -> None:
        """None: tensors have no names."""

    @property
    def output_nr(self) -> int:
        """The index of the tensor among the results of its operation."""
        return self._index

    def to_dense(self, dtype: Any = None) -> Tensor:
        """Return this tensor, converted to ``dtype`` if one is given."""
        return self if dtype is None else self.to_dtype(dtype)  # type: ignore[attr-defined, return-value]

    def is_distributed(self) -> bool:
        """Return False: a tensor is on one device."""
        return False

    def is_nonzero(self) -> bool:
        """Return whether the only element is not zero."""
        return bool(self)

    def narrow_copy(self, dim: int, start: int, length: int) -> Tensor:
        """Return a copy of the result of ``narrow``."""
        return self.narrow(dim, start, length).clone()  # type: ignore[attr-defined]

    def is_set_to(self, tensor: Tensor) -> bool:
        """Return whether another tensor has the same memory, shape and strides."""
        mine, other = (front().layout(t).__array_interface__ for t in (self, tensor))
        return all(mine[key] == other[key] for key in ("data", "shape", "strides"))

    def dim_order(self) -> tuple[int, ...]:
        """Return the dimensions by their strides, the largest first."""
        steps = front().layout(self).strides
        return tuple(sorted(range(self.ndim), key=lambda d: -abs(steps[d])))

    def as_subclass(self, cls: type) -> Any:
        """Return this tensor, with its memory and position in the graph, as an object of a subclass."""
        view = self.view(self.shape)  # type: ignore[attr-defined]
        view.__class__ = cls
        return view

    def new(self, *args: Any) -> Tensor:
        """Create a tensor: the old form of ``new_tensor`` for data, and of ``new_empty`` for sizes."""
        if len(args) == 1 and not isinstance(args[0], (int, Size)):
            return self.new_tensor(args[0])  # type: ignore[attr-defined]
        return self.new_empty(*args or (0,))  # type: ignore[attr-defined]

    def new_empty_strided(
        self, size: Sequence[int], stride: Sequence[int], dtype: Any = None, **options: Any
    ) -> Tensor:
        """Create a tensor of this element type with arbitrary elements and given strides."""
        options.setdefault("device", self.device)  # type: ignore[attr-defined]
        return _empty_strided(size, stride, dtype=self.dtype if dtype is None else dtype, **options)

    # ---- Python functions of elements

    def apply_(self, callable: Callable[[Any], Any]) -> Tensor:
        """Replace each element in place by the result of a Python function, one by one; not possible in compiled
        code."""
        return self._mapped("apply_()", callable)

    def map_(self, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
        """Replace each element in place by a Python function of it and another one; not possible in compiled code."""
        return self._mapped("map_()", callable, tensor)

    def map2_(self, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
        """Replace each element in place by a Python function of it and two others; not possible in compiled code."""
        return self._mapped("map2_()", callable, x, y)

    def _mapped(self, name: str, function: Callable[..., Any], *others: Any) -> Any:
        need_tensor(name, *others)
        operands = [front().values(t, name) for t in (self, *others)]
        arrays = [np.broadcast_to(numbers(a), self.shape).ravel().tolist() for a in operands]
        results = elements([function(*items) for items in zip(*arrays, strict=True)], self.dtype)
        return self.copy_(front().constant(results.reshape(self.shape)))  # type: ignore[attr-defined]

    # ---- methods of functions in other modules

    def bernoulli(self, *, generator: Any = None) -> Tensor:
        """Draw 1 with the probability in each element, else 0."""
        return _bernoulli(self, generator=generator)

    def multinomial(self, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Tensor:
        """Draw indices with probabilities proportional to the elements of each row."""
        return _multinomial(self, num_samples, replacement, generator=generator)

    def prelu(self, weight: Tensor) -> Tensor:
        """Multiply negative elements by ``weight``, one number or one for each channel."""
        return _prelu(self, weight)

    def hardshrink(self, lambd: float = 0.5) -> Tensor:
        """Replace elements between ``-lambd`` and ``lambd`` by 0."""
        return _hardshrink(self, lambd)
