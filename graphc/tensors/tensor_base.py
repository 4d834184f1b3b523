"""What a tensor is made of: its data, its place in the autograd graph, its version, and the tensor it is a view of."""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from graphc.base import mutation_epoch
from graphc.base.device import device
from graphc.base.dtypes import ALL, DType, bfloat16, bool_, elements, rounded, zero_dimensional
from graphc.base.errors import DeviceError, DTypeError, GradientError, MemoryLimitError
from graphc.base.mutation_epoch import Members
from graphc.base.sizes.extents import SIZES, Size, traced_size
from graphc.ir.op import OpDef
from graphc.ops import dispatch
from graphc.ops.define import no_tensor
from graphc.tape.grad_mode import enable_grad, is_grad_enabled, is_inference_mode_enabled
from graphc.tape.hooks import RemovableHandle, note_traced
from graphc.tape.node import AccumulateGrad, Edge, Node


class _ByNumpy(dict[Any, DType]):
    def __missing__(self, dtype: np.dtype) -> DType:
        native = dtype.newbyteorder("=")
        remedy = 'array.astype(array.dtype.newbyteorder("="))' if native in self else "array.astype(numpy.float32)"
        raise DTypeError(f"arrays of {dtype} are not supported", remedy=remedy)


BY_NUMPY = _ByNumpy({d.numpy: d for d in ALL})
"""Element types by numpy dtype."""


VOLATILE = [False]
"""Whether a volatile variable was ever made; until then no operation looks for them."""


Steps = tuple[tuple[OpDef, dict[str, Any]], ...]
"""Operations on one operand, with attributes, one after the other."""


class View:
    """How a tensor's elements are found in another one."""

    __slots__ = ("owner", "steps")

    def __init__(self, owner: Any, steps: Steps):
        self.owner = owner
        """The tensor that owned the memory when the view was made."""
        self.steps = steps
        """The operations that lead from the base to the view."""

    @property
    def base(self) -> Any:
        """The tensor that owns the memory, under the shape that ``steps`` start from; itself no view."""
        return self.owner if self.owner._origin is None else self.owner._origin


class FrontEnd(dispatch.Dispatcher, Protocol):
    """What tensors ask of the active dispatcher besides applying ops."""

    mode: str
    """``auto`` where what is computed may be computed by any means, else what does it."""

    def constant(self, array: np.ndarray) -> Any:
        """A new tensor that owns ``array``."""
        ...

    def values(self, tensor: Any, purpose: str) -> np.ndarray:
        """The data of a tensor; a traced one has none, which raises TraceError naming ``purpose``."""
        ...

    def assign(self, tensor: Any, value: Any) -> None:
        """Writes ``value`` (same shape and type) into ``tensor`` and everything that shares its memory."""
        ...

    def leaf(self, tensor: Any, clears: bool = False) -> Any:
        """What holds the ``grad`` of ``tensor``, which is about to become None where the caller ``clears`` it; raises
        TraceError in a trace that cannot hold it."""
        ...

    def before_write(self, tensor: Any, *others: Any) -> Any:
        """The content of ``tensor`` as an operand, beside ``others``, of the operation whose result will be assigned to
        it."""
        ...

    def unrecorded(self, tensor: Any, value: Any) -> Any:
        """What a traced ``tensor`` holds after ``value`` was written to it where that is not recorded."""
        ...

    def own(self, tensor: Any) -> Any:
        """``tensor``, a fresh result, with memory of its own."""
        ...

    def rebind(self, tensor: Any, source: Any) -> None:
        """Makes ``tensor`` share the memory of ``source`` from now on (``tensor.data = source``)."""
        ...

    def moved(self, tensor: Any, place: device) -> Any:
        """``tensor`` on another device, at the same place in the graph; a traced one is where its program runs."""
        ...

    def layout(self, tensor: Any) -> np.ndarray:
        """An array with the shape and strides of the tensor's memory."""
        ...

    def lay_out(self, tensor: Any, like: Any) -> None:
        """Notes that ``tensor`` lies in memory as ``like`` does; raises TraceError for a tensor from outside."""
        ...

    def local(self, tensor: Any) -> Any:
        """The tensor that stands for ``tensor`` here: itself, or its image in the graph that is being traced."""
        ...

    def known(self, tensor: Any) -> np.ndarray | None:
        """The elements of a tensor where no call can have others: eagerly, and of constants of a trace."""
        ...

    def backward(
        self, tensors: Any, gradients: Any, retain_graph: bool | None, create_graph: bool, inputs: Any
    ) -> None:
        """Runs the backward pass and adds to the gradients of leaf tensors."""
        ...


def front() -> FrontEnd:
    """The active dispatcher."""
    return dispatch.current()  # type: ignore[return-value]


class TensorBase:
    """Fields and autograd state of a tensor. Shape and element type are fixed; the data may be numpy or traced."""

    _data: Any
    """A numpy array, or a value of the graph that is being traced."""
    dtype: DType
    """Element type."""
    _counter: list[int] | None
    """The version, shared by all tensors that share memory, and a second number once others than tensors have seen that
    memory (see ``expose``); None for tensors made in inference mode."""
    _requires_grad = False
    _grad: Any = None
    _node: Node | None = None
    _index = 0
    _view: View | None = None
    _origin: Any = None
    """For an owner of memory whose shape was changed in place: what it was before, now the base of it and its views."""
    _seen = 0
    """Version of the base at which a view's node (and traced value) was derived from it."""
    _detached = False
    """True for a view that shares memory with its base but no gradient."""
    _hooks: OrderedDict[int, Callable[[Any], Any]] | None = None
    _post_hooks: OrderedDict[int, Callable[[Any], Any]] | None = None
    _listener: Callable[[Any], None] | None = None
    """For a leaf, who is told that a backward pass has added to its gradient: the reducer of several processes."""
    _accumulator: weakref.ref[AccumulateGrad] | None = None
    _tangents: dict[int, Any] | None = None
    """Tangents in forward mode, by level."""
    _keeps_grad = False
    _fresh = False
    """True for a gradient whose memory nobody else has seen, so that a leaf may keep it as its own."""
    _in_compiled = False
    """Whether compiled code computes gradients of this parameter."""
    _volatile = False
    """True for a variable that forbids gradients to whatever is computed from it."""

    @property
    def shape(self) -> Size:
        """Extent of each dimension."""
        data = self._data
        return SIZES[data.shape] if data.__class__ is np.ndarray else traced_size(data.shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def dim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the extent of one dimension."""
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        """Number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    nelement = numel

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.numel() * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def is_floating_point(self) -> bool:
        """True for f32 and f64."""
        return self.dtype.is_floating_point

    # ---- autograd state

    @property
    def requires_grad(self) -> bool:
        """Whether gradients with respect to this tensor are computed."""
        return refresh(front().local(self))._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Sets whether operations on this leaf tensor are recorded; returns it.

        Raises GradientError for the result of an operation, DTypeError for a type that is not floating point.
        """
        if requires_grad and not self.dtype.is_differentiable:
            raise DTypeError(
                f"only floating-point tensors can require gradients, this one is {self.dtype.name}",
                remedy="tensor.float()",
            )
        if self._node is not None and not requires_grad:
            raise GradientError(
                "requires_grad of the result of an operation cannot be switched off", remedy="tensor.detach()"
            )
        mutation_epoch.note()
        self._requires_grad = bool(requires_grad)
        return self

    @property
    def grad_fn(self) -> Node | None:
        """The node that made this tensor; None for leaf tensors."""
        return refresh(front().local(self))._node

    creator = grad_fn

    @property
    def is_leaf(self) -> bool:
        """True for tensors made by the user, and for all that do not require gradients."""
        return self.grad_fn is None

    @property
    def grad(self) -> Any:
        """The accumulated gradient, or None."""
        here = front().leaf(self)
        if here._node is not None and not here._keeps_grad:
            warnings.warn(
                "grad of a tensor that is no leaf is only kept after retain_grad() on it; it is None",
                UserWarning,
                stacklevel=2,
            )
        return here._grad

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None:
            if not isinstance(value, TensorBase):
                raise DTypeError(f"grad must be a tensor or None, got {type(value).__name__}")
            if value.shape != self.shape:
                raise GradientError(f"grad has shape {list(value.shape)}, the tensor {list(self.shape)}")
            if value.dtype is not self.dtype:
                raise DTypeError(f"grad is {value.dtype.name}, the tensor {self.dtype.name}")
            if isinstance(value._data.dtype, np.dtype) and value.device != self.device:  # type: ignore[attr-defined]
                raise DeviceError(
                    f"grad is on {value.device}, the tensor on {self.device}",  # type: ignore[attr-defined]
                    remedy="grad.to(tensor.device)",
                )
        front().leaf(self, value is None)._grad = value

    @property
    def _version(self) -> int:
        """How often this memory was written to by in-place operations."""
        if self._counter is None:
            raise GradientError("tensors made in inference mode have no version counter")
        return self._counter[0]

    def is_inference(self) -> bool:
        """True for a tensor made in inference mode."""
        return self._counter is None

    @property
    def retains_grad(self) -> bool:
        """True for the result of an operation that keeps its gradient."""
        return self._keeps_grad

    def retain_grad(self) -> None:
        """Makes the result of an operation keep its gradient in ``grad``; no effect on leaf tensors."""
        here = refresh(front().local(self))
        if not here._requires_grad:
            raise GradientError("retain_grad() on a tensor that does not require gradients")
        if here._node is None or here._keeps_grad:
            return
        note_traced()
        here._keeps_grad = True
        if here._node.retained is None:
            here._node.retained = {}
        here._node.retained[here._index] = weakref.ref(here)

    def register_hook(self, hook: Callable[[Any], Any]) -> RemovableHandle:
        """``hook(grad)`` runs when the gradient of this tensor is known and may return another one."""
        here = refresh(front().local(self))
        if not here._requires_grad:
            raise GradientError(
                "a hook needs a tensor that requires gradients", remedy="tensor.requires_grad_() before the operations"
            )
        if here._node is not None:
            watched = getattr(front(), "watch_tensor", None)
            if watched is not None and (inside := watched(here)) is not None:
                handle = RemovableHandle(inside)
                inside[handle.id] = hook
                return handle
            hooks = here._node.hooks_of(here._index)
        else:
            hooks = here._hooks = Members() if here._hooks is None else here._hooks
        note_traced()
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        return handle

    def register_post_accumulate_grad_hook(self, hook: Callable[[Any], Any]) -> RemovableHandle:
        """``hook(tensor)`` runs after the gradient of this leaf tensor was added to ``grad``."""
        here = refresh(front().local(self))
        if not here._requires_grad or here._node is not None:
            raise GradientError("a hook after accumulation needs a leaf tensor that requires gradients")
        if here._post_hooks is None:
            here._post_hooks = Members()
        note_traced()
        handle = RemovableHandle(here._post_hooks)
        here._post_hooks[handle.id] = hook
        return handle

    @property
    def volatile(self) -> bool:
        """True for a volatile variable and for whatever was computed from one: nothing of it has a gradient."""
        return self._volatile

    def _is_view(self) -> bool:
        """True when this tensor was made as a view of another one's memory."""
        return self._view is not None and self._origin is None

    @property
    def _base(self) -> Any:
        """The tensor whose memory this one is a view of, or None."""
        return self._view.owner if self._view is not None and self._origin is None else None


def need_tensor(name: str, *values: Any) -> None:
    """Raises ArgumentError when one of the arguments of ``name`` is no tensor."""
    for value in values:
        if not isinstance(value, TensorBase):
            raise no_tensor(name, value)


def edge_of(tensor: TensorBase) -> Edge:
    """Where the gradient of a tensor goes: its node, or for a leaf the node that adds to its ``grad``."""
    node = tensor._node
    if node is not None:
        return (node, tensor._index)
    accumulator = None if tensor._accumulator is None else tensor._accumulator()
    if accumulator is None:
        accumulator = AccumulateGrad(tensor)
        tensor._accumulator = weakref.ref(accumulator)
    return (accumulator, 0)


def refresh(tensor: Any) -> Any:
    """``tensor``, after a view whose base was written to has taken over the base's new history."""
    view = tensor._view
    if view is None or tensor._counter is None or tensor._seen == tensor._counter[0]:
        return tensor
    tensor._seen = tensor._counter[0]
    base = view.base
    traced = not isinstance(base._data.dtype, np.dtype)
    recorded = not tensor._detached and base._requires_grad and base._node is not None
    if not traced and not recorded and base._tangents is None:
        return tensor
    with enable_grad():
        fresh = base
        for op, attrs in view.steps:
            fresh = dispatch.apply(op, (fresh,), attrs)
    if traced:
        tensor._data = fresh._data
    if fresh._tangents is not None:
        tensor._tangents = {**(tensor._tangents or {}), **fresh._tangents}
    if not tensor._detached and (traced or recorded):
        mutation_epoch.note()
        tensor._node, tensor._index, tensor._requires_grad = fresh._node, fresh._index, fresh._requires_grad
    return tensor


def any_volatile(operands: Sequence[Any], results: Sequence[Any]) -> bool:
    """Whether an operand is volatile; then all results become so."""
    if not any([t._volatile for t in operands]):
        return False
    for result in results:
        result._volatile = True
    return True


def bump(tensor: TensorBase) -> None:
    """Notes that the memory of ``tensor`` was written to."""
    if tensor._counter is not None:
        tensor._counter[0] += 1


def expose(tensor: TensorBase) -> None:
    """Notes that the memory of ``tensor`` can be written to without its version being counted, from now on: by NumPy,
    another library or another process."""
    counter = tensor._counter
    if counter is not None and len(counter) == 1:
        counter.append(1)


def is_counted(tensor: TensorBase) -> bool:
    """Whether every write to the memory of ``tensor`` is counted by its version."""
    return tensor._counter is not None and len(tensor._counter) == 1


def check_writable(tensor: TensorBase) -> None:
    """Raises when an in-place operation on ``tensor`` is not allowed while operations are recorded."""
    if tensor._counter is None and not is_inference_mode_enabled():
        raise GradientError(
            "a tensor made in inference mode cannot be written to outside of it", remedy="tensor.clone() first"
        )
    if not is_grad_enabled() or not tensor._requires_grad:
        return
    if tensor._node is None:
        raise GradientError(
            "a leaf tensor that requires gradients is written to by an in-place operation",
            remedy="with graphc.no_grad(): ..., or the operation that returns a new tensor",
        )
    base = tensor._base
    if base is not None and base._requires_grad and base._node is None and not tensor._detached:
        raise GradientError(
            "a view of a leaf tensor that requires gradients is written to by an in-place operation",
            remedy="with graphc.no_grad(): ..., or work on a clone()",
        )


def dtype_from(array: np.ndarray) -> DType:
    """The element type of an array; raises DTypeError when graphc has none like it."""
    return BY_NUMPY[array.dtype]


def too_large(name: str, error: MemoryError, where: str | None = None) -> MemoryLimitError:
    """The error for a result that does not fit into memory."""
    return MemoryLimitError(f"{name}: {error}", where=where, remedy="a smaller tensor")


def warn_of_lost_parts() -> None:
    """Warns that complex numbers become real ones."""
    warnings.warn("a real tensor has no imaginary parts, which are lost", UserWarning, stacklevel=3)


def converted(data: Any, dtype: DType) -> np.ndarray:
    """A new array of numbers or nested sequences of them. What is too large for a floating-point type becomes infinite.

    Raises DTypeError for what is no number, and for what is too large for integers.
    """
    known = getattr(data, "dtype", None)
    if known == bfloat16.numpy:
        return np.array(elements(data, dtype))
    if isinstance(known, np.dtype) and known.kind == "c" and not (dtype.is_complex or dtype is bool_):
        warn_of_lost_parts()
        data = data.real
    try:
        return zero_dimensional(data, dtype) if data.__class__ is float else rounded(data, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise DTypeError(f"the data cannot be made {dtype.name}: {error}", remedy="numbers that fit the type") from None
