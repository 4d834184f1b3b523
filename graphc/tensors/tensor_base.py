"""Fields and autograd state of a tensor: data, node, version counter, and the tensor it is a view of."""

from __future__ import annotations

import re
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from graphc.base import mutation_epoch
from graphc.base.device import device
from graphc.base.dtypes import ALL, DType, bfloat16, bool_, elements, rounded, zero_dimensional
from graphc.base.errors import DeviceError, DTypeError, GradientError, GraphcError, MemoryLimitError
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
        remedy = (
            'call array.astype(array.dtype.newbyteorder("="))' if native in self else "call array.astype(numpy.float32)"
        )
        raise DTypeError(f"arrays of {dtype} are not supported", remedy=remedy)


BY_NUMPY = _ByNumpy({d.numpy: d for d in ALL})
"""Element types by numpy dtype."""


VOLATILE = [False]
"""Whether a volatile variable was ever created; until then no operation checks for them."""


Steps = tuple[tuple[OpDef, dict[str, Any]], ...]
"""Operations on one operand, with attributes, applied one after the other."""


class View:
    """The derivation of a view from the tensor that owns its memory."""

    __slots__ = ("owner", "steps")

    def __init__(self, owner: Any, steps: Steps):
        self.owner = owner
        """The tensor that owned the memory when the view was created."""
        self.steps = steps
        """The operations from the base to the view."""

    @property
    def base(self) -> Any:
        """The tensor that owns the memory, in the shape from which ``steps`` start; never a view itself."""
        return self.owner if self.owner._origin is None else self.owner._origin


class FrontEnd(dispatch.Dispatcher, Protocol):
    """Operations of the active dispatcher that tensors use besides ``apply``."""

    mode: str
    """``auto`` if any means of computation is allowed, else the name of the required one."""

    def constant(self, array: np.ndarray) -> Any:
        """Return a new tensor that owns ``array``."""
        ...

    def values(self, tensor: Any, purpose: str) -> np.ndarray:
        """Return the data of a tensor; raise TraceError naming ``purpose`` for a traced one, which has no data."""
        ...

    def size(self, count: Any, most: Any, purpose: str) -> Any:
        """Return a count of one element, at most ``most``, as a number; in a trace of a call as a size that each call
        reads. Raise ValueNeededError naming ``purpose`` in other traces."""
        ...

    def assign(self, tensor: Any, value: Any) -> None:
        """Write ``value`` (same shape and type) to ``tensor`` and everything sharing its memory."""
        ...

    def leaf(self, tensor: Any, clears: bool = False) -> Any:
        """Return the tensor that holds the ``grad`` of ``tensor``. With ``clears`` the caller is about to set it to
        None. Raise TraceError in a trace without access to it."""
        ...

    def before_write(self, tensor: Any, *others: Any) -> Any:
        """Return the content of ``tensor`` as an operand, next to ``others``, of the operation whose result will be
        assigned to it."""
        ...

    def unrecorded(self, tensor: Any, value: Any) -> Any:
        """Return the value of a traced ``tensor`` after an unrecorded write of ``value``."""
        ...

    def own(self, tensor: Any) -> Any:
        """Return ``tensor``, a fresh result, with memory of its own."""
        ...

    def rebind(self, tensor: Any, source: Any) -> None:
        """Make ``tensor`` share the memory of ``source`` from now on (``tensor.data = source``)."""
        ...

    def moved(self, tensor: Any, target: device) -> Any:
        """Return ``tensor`` on another device, recorded in the graph; a traced one stays where its program runs."""
        ...

    def layout(self, tensor: Any) -> np.ndarray:
        """Return an array with the shape and strides of the tensor's memory."""
        ...

    def lay_out(self, tensor: Any, like: Any) -> None:
        """Give ``tensor`` the memory layout of ``like``; raise TraceError for a tensor from outside."""
        ...

    def local(self, tensor: Any) -> Any:
        """Return the tensor to use here for ``tensor``: itself, or its image in the graph under trace."""
        ...

    def known(self, tensor: Any) -> np.ndarray | None:
        """Return the elements of a tensor if no call can have others: in eager mode, and for constants of a trace."""
        ...

    def backward(
        self, tensors: Any, gradients: Any, retain_graph: bool | None, create_graph: bool, inputs: Any
    ) -> None:
        """Run the backward pass and add to the gradients of leaf tensors."""
        ...


def front() -> FrontEnd:
    """Return the active dispatcher."""
    return dispatch.current()  # type: ignore[return-value]


class TensorBase:
    """Fields and autograd state of a tensor. Shape and element type are fixed; the data may be a numpy array or
    traced."""

    _data: Any
    """A numpy array, or a value of the graph under trace."""
    dtype: DType
    """Element type."""
    _counter: list[int] | None
    """The version number, shared by all tensors with the same memory, and a second item once code other than tensors
    has seen that memory (see ``expose``); None for tensors created in inference mode."""
    _requires_grad = False
    _grad: Any = None
    _node: Node | None = None
    _index = 0
    _view: View | None = None
    _origin: Any = None
    """For an owner of memory whose shape was changed in place: the tensor before, now the base of it and its views."""
    _seen = 0
    """Version of the base at which a view's node (and traced value) was derived from it."""
    _detached = False
    """Whether the tensor is a view that shares memory with its base but no gradient."""
    _hooks: OrderedDict[int, Callable[[Any], Any]] | None = None
    _post_hooks: OrderedDict[int, Callable[[Any], Any]] | None = None
    _listener: Callable[[Any], None] | None = None
    """For a leaf, the callback after a backward pass has added to its gradient: the reducer of several processes."""
    _accumulator: weakref.ref[AccumulateGrad] | None = None
    _tangents: dict[int, Any] | None = None
    """Tangents in forward mode, by level."""
    _keeps_grad = False
    _fresh = False
    """Whether nobody else has seen the memory of a gradient, so that a leaf may keep it."""
    _in_compiled = False
    """Whether compiled code computes gradients of this parameter."""
    _volatile = False
    """Whether the tensor is a variable that excludes its results from differentiation."""

    @property
    def shape(self) -> Size:
        """The size of each dimension."""
        data = self._data
        return SIZES[data.shape] if data.__class__ is np.ndarray else traced_size(data.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def dim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the size of one dimension."""
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        """Return the number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    nelement = numel

    def element_size(self) -> int:
        """Return the bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.numel() * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return self.dtype.itemsize

    def is_floating_point(self) -> bool:
        """Return whether the element type is floating point."""
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
        """Set whether operations on this leaf tensor are recorded, and return the tensor.

        Raises GradientError for the result of an operation, DTypeError for a type other than floating point.
        """
        if requires_grad and not self.dtype.is_differentiable:
            raise DTypeError(
                f"only floating-point tensors can require gradients, this one is {self.dtype.name}",
                remedy="call tensor.float()",
            )
        if self._node is not None and not requires_grad:
            raise GradientError(
                "requires_grad of the result of an operation cannot be switched off", remedy="call tensor.detach()"
            )
        mutation_epoch.note()
        self._requires_grad = bool(requires_grad)
        return self

    @property
    def grad_fn(self) -> Node | None:
        """The node that produced this tensor; None for leaf tensors."""
        return refresh(front().local(self))._node

    creator = grad_fn

    @property
    def is_leaf(self) -> bool:
        """Whether the user created the tensor, or it requires no gradients."""
        return self.grad_fn is None

    @property
    def grad(self) -> Any:
        """The accumulated gradient, or None."""
        here = front().leaf(self)
        if here._node is not None and not here._keeps_grad:
            warnings.warn(
                "grad is None: a tensor that is not a leaf keeps its gradient only after retain_grad()",
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
                    remedy="move it: grad.to(tensor.device)",
                )
        front().leaf(self, value is None)._grad = value

    @property
    def _version(self) -> int:
        """The number of in-place writes to this memory."""
        if self._counter is None:
            raise GradientError("tensors created in inference mode have no version counter")
        return self._counter[0]

    def is_inference(self) -> bool:
        """Return whether the tensor was created in inference mode."""
        return self._counter is None

    @property
    def retains_grad(self) -> bool:
        """Whether this is the result of an operation and keeps its gradient."""
        return self._keeps_grad

    def retain_grad(self) -> None:
        """Make the result of an operation keep its gradient in ``grad``; no effect on leaf tensors."""
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
        """Call ``hook(grad)`` when the gradient of this tensor is complete; it may return a replacement.

        Example:
            >>> import graphc as gc
            >>> x = gc.tensor([1.0, 2.0], requires_grad=True)
            >>> handle = x.register_hook(lambda grad: grad * 10)
            >>> x.sum().backward()
            >>> x.grad
            tensor([10., 10.])
        """
        here = refresh(front().local(self))
        if not here._requires_grad:
            raise GradientError(
                "register_hook needs a tensor that requires gradients",
                remedy="call tensor.requires_grad_() before the operations",
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
        """Call ``hook(tensor)`` after each addition to the ``grad`` of this leaf tensor."""
        here = refresh(front().local(self))
        if not here._requires_grad or here._node is not None:
            raise GradientError("register_post_accumulate_grad_hook needs a leaf tensor that requires gradients")
        if here._post_hooks is None:
            here._post_hooks = Members()
        note_traced()
        handle = RemovableHandle(here._post_hooks)
        here._post_hooks[handle.id] = hook
        return handle

    @property
    def volatile(self) -> bool:
        """Whether the tensor is a volatile variable, or computed from one: nothing of it has a gradient."""
        return self._volatile

    def _is_view(self) -> bool:
        """Return whether this tensor was created as a view of another one's memory."""
        return self._view is not None and self._origin is None

    @property
    def _base(self) -> Any:
        """The tensor that this one is a view of, or None."""
        return self._view.owner if self._view is not None and self._origin is None else None


def need_tensor(name: str, *values: Any) -> None:
    """Raise ArgumentError if an argument of ``name`` is not a tensor."""
    for value in values:
        if not isinstance(value, TensorBase):
            raise no_tensor(name, value)


def name_in_error(error: GraphcError, op: str, name: str) -> None:
    """Name the user's function in an error of the op that computes it, and drop the op's line of IR."""
    error.what = re.sub(rf"\b{op}\b", name, error.what)
    error.where = None


def edge_of(tensor: TensorBase) -> Edge:
    """Return the receiver of a tensor's gradient: its node, or for a leaf the node that adds to ``grad``."""
    node = tensor._node
    if node is not None:
        return (node, tensor._index)
    accumulator = None if tensor._accumulator is None else tensor._accumulator()
    if accumulator is None:
        accumulator = AccumulateGrad(tensor)
        tensor._accumulator = weakref.ref(accumulator)
    return (accumulator, 0)


def edges_of(tensors: Sequence[TensorBase]) -> tuple[Edge, ...]:
    """Return ``edge_of`` of each tensor, without a call for those whose node exists."""
    edges: list[Edge] = []
    for tensor in tensors:
        node, index = tensor._node, tensor._index
        if node is None:
            node, index = (None if tensor._accumulator is None else tensor._accumulator()), 0
        edges.append(edge_of(tensor) if node is None else (node, index))
    return tuple(edges)


def grads_of(tensors: Sequence[Any]) -> list[Any]:
    """Return ``grad`` of each tensor."""
    if dispatch.active() is not None:
        return [t.grad for t in tensors]
    return [t._grad if t._node is None else t.grad for t in tensors]


def refresh(tensor: Any) -> Any:
    """Return ``tensor``; a view whose base was written to first takes over the base's new history."""
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
    """Return whether an operand is volatile; if so, mark all results volatile."""
    if not any([t._volatile for t in operands]):
        return False
    for result in results:
        result._volatile = True
    return True


def bump(tensor: TensorBase) -> None:
    """Count a write to the memory of ``tensor``."""
    if tensor._counter is not None:
        tensor._counter[0] += 1


def expose(tensor: TensorBase) -> None:
    """Note that NumPy, another library or another process can write to the memory of ``tensor`` uncounted from now
    on."""
    counter = tensor._counter
    if counter is not None and len(counter) == 1:
        counter.append(1)


def is_counted(tensor: TensorBase) -> bool:
    """Return whether the version of ``tensor`` counts every write to its memory."""
    return tensor._counter is not None and len(tensor._counter) == 1


def check_writable(tensor: TensorBase) -> None:
    """Raise GradientError if an in-place operation on ``tensor`` is not allowed while operations are recorded."""
    if tensor._counter is None and not is_inference_mode_enabled():
        raise GradientError(
            "a tensor that was created in inference mode cannot be written to outside of it",
            remedy="write to a tensor.clone()",
        )
    if not is_grad_enabled() or not tensor._requires_grad:
        return
    if tensor._node is None:
        raise GradientError(
            "an in-place operation writes to a leaf tensor that requires gradients",
            remedy="write within graphc.no_grad(), or use the operation that returns a new tensor",
        )
    base = tensor._base
    if base is not None and base._requires_grad and base._node is None and not tensor._detached:
        raise GradientError(
            "an in-place operation writes to a view of a leaf tensor that requires gradients",
            remedy="write within graphc.no_grad(), or to a clone()",
        )


def dtype_from(array: np.ndarray) -> DType:
    """Return the element type of an array; raise DTypeError if graphc has no such type."""
    return BY_NUMPY[array.dtype]


def too_large(name: str, error: MemoryError, where: str | None = None) -> MemoryLimitError:
    """Return the error for a result larger than the memory."""
    return MemoryLimitError(f"{name}: {error}", where=where, remedy="use a smaller tensor")


def warn_of_lost_parts() -> None:
    """Warn about a conversion of complex numbers to real ones, which drops the imaginary parts."""
    warnings.warn("the conversion to a real tensor drops the imaginary parts", UserWarning, stacklevel=3)


def converted(data: Any, dtype: DType) -> np.ndarray:
    """Return a new array of numbers or nested sequences of them. Too large values become infinite in floating-point
    types.

    Raises DTypeError for data other than numbers, and for integers out of range.
    """
    source_dtype = getattr(data, "dtype", None)
    if source_dtype == bfloat16.numpy:
        return np.array(elements(data, dtype))
    if isinstance(source_dtype, np.dtype) and source_dtype.kind == "c" and not (dtype.is_complex or dtype is bool_):
        warn_of_lost_parts()
        data = data.real
    try:
        return zero_dimensional(data, dtype) if data.__class__ is float else rounded(data, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise DTypeError(
            f"cannot convert the data to {dtype.name}: {error}", remedy="pass numbers in the range of the type"
        ) from None
