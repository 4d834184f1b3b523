"""Pack values into trees for a file, and unpack them: tensors, arrays, numbers, strings, containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import BY_NAME, DType
from graphc.base.errors import ArgumentError, ArtifactError, DeviceError
from graphc.tensors.placement import is_on_device
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front, refresh

_PLAIN = (str, int, float, bool, type(None))


class Packer:
    """Packer of values into trees. Tensors are copied; a tensor that occurs twice is stored once."""

    def __init__(self, referenced: Sequence[Any] = (), lenient: bool = False):
        """Prepare to pack values; objects in ``referenced``, which the file stores separately, become their indices.

        ``lenient`` packs an unsupported value as the name of its class instead of raising an error.
        """
        self._referenced = {id(value): i for i, value in enumerate(referenced) if not isinstance(value, Tensor)}
        self._lenient = lenient
        self._packed: dict[int, tuple[Any, int]] = {}

    def pack(self, value: Any, name: str) -> dict[str, Any]:
        """Pack a value into a tree of dictionaries, lists, numbers, strings and arrays.

        ``name`` describes the value in errors. Raises ArgumentError for an unsupported value, DeviceError for a tensor
        on a device.
        """
        if id(value) in self._referenced:
            return {"known": self._referenced[id(value)]}
        if isinstance(value, Tensor):
            return self._tensor(value, name)
        if type(value) in _PLAIN:
            return {"plain": value}
        if isinstance(value, np.ndarray) and value.dtype.kind in "?biufc":
            return {"array": value.copy()}
        if isinstance(value, np.generic) and value.dtype.kind in "?biufc":
            return {"number": np.asarray(value)}
        if isinstance(value, DType):
            return {"dtype": value.name}
        if isinstance(value, slice):
            return {"slice": [self.pack(v, name) for v in (value.start, value.stop, value.step)]}
        return self._container(value, name)

    def _container(self, value: Any, name: str) -> dict[str, Any]:
        if isinstance(value, Mapping):
            return {"dict": [[self.pack(k, name), self.pack(v, f"{name}[{k!r}]")] for k, v in value.items()]}
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [self.pack(v, f"{name}[{i}]") for i, v in enumerate(value)]}
        if self._lenient:
            return {"other": type(value).__name__}
        raise ArgumentError(
            f"debug: {name} is a {type(value).__name__}, which cannot be recorded",
            remedy="use tensors, arrays, numbers, strings, containers of these, modules and optimizers",
        )

    def _tensor(self, tensor: Tensor, name: str) -> dict[str, Any]:
        if id(tensor) in self._packed:
            return {"same": self._packed[id(tensor)][1]}
        data = refresh(tensor)._data
        if is_on_device(data):
            raise DeviceError(
                f"debug: {name} is on {tensor.device}; only steps of the host are recorded",
                remedy="move it with .cpu()",
            )
        self._packed[id(tensor)] = tensor, len(self._packed)
        # NOTE: a copy in C order would lose the strides, and the bits of products can depend on them.
        return {"tensor": data.copy(order="K"), "requires_grad": bool(tensor._requires_grad)}


class Unpacker:
    """Unpacker of trees into values; ``referenced`` are the objects that indices refer to."""

    def __init__(self, referenced: Sequence[Any] = ()):
        self._referenced = referenced
        self._tensors: list[Tensor] = []

    def unpack(self, tree: Any) -> Any:
        """Return the value of a tree. Raises ArtifactError for a tree that ``Packer`` did not make."""
        try:
            return self._unpack(tree)
        except (LookupError, TypeError, ValueError, AttributeError, StopIteration) as error:
            raise ArtifactError(f"the recording is damaged: {type(error).__name__}: {error}") from None

    def _unpack(self, tree: Any) -> Any:
        kind = next(iter(tree))
        content = tree[kind]
        if kind == "tensor":
            return self._tensor(content, tree["requires_grad"])
        if kind == "dict":
            return {self._unpack(k): self._unpack(v) for k, v in content}
        if kind in ("list", "tuple"):
            elements = [self._unpack(v) for v in content]
            return elements if kind == "list" else tuple(elements)
        if kind == "slice":
            return slice(*[self._unpack(v) for v in content])
        return self._leaf(kind, content)

    def _leaf(self, kind: str, content: Any) -> Any:
        if kind == "known":
            return self._referenced[content]
        if kind == "same":
            return self._tensors[content]
        if kind == "dtype":
            return BY_NAME[content]
        if kind == "number":
            return content[()]
        if kind in ("plain", "array", "other"):
            return content
        raise KeyError(kind)

    def _tensor(self, array: np.ndarray, requires_grad: bool) -> Tensor:
        tensor: Any = front().constant(np.array(array, order="K"))
        if requires_grad:
            tensor.requires_grad_()
        self._tensors.append(tensor)
        return tensor


def arrays_in(tree: Any, name: str = "") -> dict[str, Any]:
    """Return the arrays and numbers in a packed tree by their path in the value, such as ``[0]['weight']``."""
    kind = next(iter(tree))
    content = tree[kind]
    if kind in ("tensor", "array", "number"):
        return {name: content}
    if kind == "plain" and type(content) in (int, float, bool):
        return {name: np.asarray(content)}
    arrays: dict[str, Any] = {}
    if kind == "dict":
        for key, child in content:
            arrays.update(arrays_in(child, f"{name}[{next(iter(key.values()))!r}]"))
    elif kind in ("list", "tuple"):
        for i, child in enumerate(content):
            arrays.update(arrays_in(child, f"{name}[{i}]"))
    return arrays
