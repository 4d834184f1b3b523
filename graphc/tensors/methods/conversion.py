"""Tensor methods that convert element types or exchange memory with other libraries."""

from __future__ import annotations

import builtins
from mmap import mmap
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.dlpack import HostArray
from graphc.base.dtypes import bfloat16, bool_, dtype_of, float16, float32, float64, int8, int16, int32, int64, uint8
from graphc.base.errors import GradientError, UnsupportedError
from graphc.base.lazy import deferred
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors.placement import is_on_device, place_of
from graphc.tensors.tensor_base import TensorBase, expose, front, warn_of_lost_parts

if TYPE_CHECKING:
    from graphc.tensors.tensor import Tensor

_namespace = deferred("graphc.array_api.inspection:namespace")
_ufunc, _function = (deferred(f"graphc.array_api.numpy_calls:{name}") for name in ("apply_ufunc", "apply_function"))


_OLD_NAMES = {
    "float": float32,
    "double": float64,
    "long": int64,
    "int": int32,
    "char": int8,
    "byte": uint8,
    "bool": bool_,
}


def type_named(value: Any) -> Any:
    """Return the element type of an old PyTorch name such as ``torch.FloatTensor``, or of a class of that name; return
    anything else unchanged."""
    if isinstance(value, str) and value.endswith("Tensor"):
        return _OLD_NAMES.get(value.rpartition(".")[2].removesuffix("Tensor").lower(), value)
    return value.dtype if isinstance(value, type) and hasattr(value, "dtype") else value


class Conversion(TensorBase):
    """Conversions between element types."""

    def type_as(self, other: Tensor) -> Tensor:
        """Convert to the element type of another tensor."""
        return self.to_dtype(other.dtype)

    def to_dtype(self, dtype: Any) -> Tensor:
        """Convert to another element type; return the tensor itself if it has the type."""
        dtype = dtype_of(dtype)
        if self.dtype.is_complex and not (dtype.is_complex or dtype is bool_):
            warn_of_lost_parts()
        return self if dtype is self.dtype else ew.cast(self, dtype=dtype)  # type: ignore[return-value]

    def float(self) -> Tensor:
        """Convert to f32."""
        return self.to_dtype(float32)

    def half(self) -> Tensor:
        """Convert to f16."""
        return self.to_dtype(float16)

    def bfloat16(self) -> Tensor:
        """Convert to bf16."""
        return self.to_dtype(bfloat16)

    def short(self) -> Tensor:
        """Convert to i16."""
        return self.to_dtype(int16)

    def double(self) -> Tensor:
        """Convert to f64."""
        return self.to_dtype(float64)

    def long(self) -> Tensor:
        """Convert to i64."""
        return self.to_dtype(int64)

    def int(self) -> Tensor:
        """Convert to i32."""
        return self.to_dtype(int32)

    def char(self) -> Tensor:
        """Convert to i8."""
        return self.to_dtype(int8)

    def byte(self) -> Tensor:
        """Convert to u8."""
        return self.to_dtype(uint8)

    def bool(self) -> Tensor:
        """Convert to bool: whether elements are nonzero."""
        return self.to_dtype(bool_)

    def type(self, dtype: Any = None) -> Any:
        """Convert to another element type; without one, return the name of this tensor's."""
        return f"graphc.{self.dtype.long_name}" if dtype is None else self.to_dtype(type_named(dtype))

    # ---- memory

    def share_memory_(self) -> Tensor:
        """Move this tensor to memory shared with processes forked from this one, and return it."""
        if not self.is_shared():
            data = front().values(self, "share_memory_()")
            array = np.ndarray(data.shape, data.dtype, mmap(-1, max(data.nbytes, 1)))
            array[...] = data
            self.data = front().constant(array)  # type: ignore[attr-defined]
            expose(self)  # type: ignore[arg-type]
        return self  # type: ignore[return-value]

    def is_shared(self) -> builtins.bool:
        """Return whether forked processes share the memory."""
        memory: Any = front().values(self, "is_shared()")
        while isinstance(memory, np.ndarray):
            memory = memory.base
        return isinstance(memory, mmap)

    # ---- exchange with other libraries

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Raise UnsupportedError; PyTorch calls this when one of its functions gets a tensor of graphc."""
        # NOTE: PyTorch's operators would replace a TypeError by one with an empty message.
        raise UnsupportedError(
            f"torch's {getattr(function, '__name__', function)} got a tensor of graphc",
            remedy="call torch.from_dlpack(x) for a PyTorch tensor, or graphc.from_dlpack(y) for a graphc tensor (both "
            "share memory), or graphc.from_torch(model, ...) for a module",
        )

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        """Return the functions of the array API standard, ``graphc.array_api``; raise AttributeValueError for an
        unknown version."""
        return _namespace(api_version)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Apply the operation of graphc for an element-wise numpy function, or let numpy compute. Raise GradientError
        if numpy would lose a gradient, TraceError in a trace."""
        return _ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        """Handle the other functions of numpy like ``__array_ufunc__``."""
        return _function(function, args, options)

    def __dlpack__(
        self,
        /,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: builtins.bool | None = None,
    ) -> Any:
        """Return the memory as a DLPack capsule; raise GradientError for a tensor that requires gradients."""
        options = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        return self._shared().__dlpack__(**{name: value for name, value in options.items() if value is not None})

    def __dlpack_device__(self) -> tuple[builtins.int, builtins.int]:
        """Return kind and number of the device by DLPack's numbering."""
        return self._data.__dlpack_device__() if is_on_device(self._data) else (1, 0)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory of a tensor on a GPU, for other libraries; raises AttributeError elsewhere."""
        if not self.is_cuda:
            raise AttributeError("__cuda_array_interface__ is for tensors on a GPU")
        return self._shared().__cuda_array_interface__

    def _shared(self) -> Any:
        """Return the array for access by code other than tensors."""
        if not is_on_device(self._data):
            return self._host_memory()
        if self._requires_grad:  # type: ignore[attr-defined]
            raise GradientError(
                "a tensor that requires gradients cannot share its memory with another library",
                remedy="call tensor.detach()",
            )
        expose(self)
        return self._data

    def _host_memory(self) -> Any:
        if self.dtype is not bfloat16:  # type: ignore[attr-defined]
            return self.numpy()  # type: ignore[attr-defined]
        values = self._values()  # type: ignore[attr-defined]
        expose(self)
        return HostArray(values)

    def get_device(self) -> builtins.int:
        """Return the number of the GPU; -1 for a tensor elsewhere."""
        home = place_of(self._data)
        return (home.index or 0) if home.type == "cuda" else -1

    @property
    def is_cuda(self) -> builtins.bool:
        """Whether the tensor is on a GPU."""
        return place_of(self._data).type == "cuda"

    @property
    def is_cpu(self) -> builtins.bool:
        """Whether the tensor is in the memory of the host."""
        return not is_on_device(self._data)

    def is_signed(self) -> builtins.bool:
        """Return whether the element type has negative numbers."""
        return self.dtype.kind in "fhic"

    def is_same_size(self, other: Tensor) -> builtins.bool:
        """Return whether another tensor has the same shape."""
        return self.shape == other.shape

    def ndimension(self) -> builtins.int:
        """Return the number of dimensions."""
        return self.ndim
