"""The eager dispatcher: every op is computed at once by its numpy reference and recorded for gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from graphc.base import config, mutation_epoch
from graphc.base.device import device
from graphc.base.dtypes import DType, bfloat16, elements
from graphc.base.errors import ArgumentError, DeviceError, GradientError, GraphcError, TraceError
from graphc.eager import engine
from graphc.eager.forward_ad import propagate
from graphc.eager.record import record
from graphc.ir.graph.build import describe
from graphc.ir.op import OpDef, Trait
from graphc.ir.types import TensorType
from graphc.ops import dispatch, shape
from graphc.ops.define import no_tensor
from graphc.tape.grad_mode import is_grad_enabled, is_inference_mode_enabled
from graphc.tape.tangents import USED, has_tangents
from graphc.tensors import journal
from graphc.tensors.placement import is_on_device, on_host, placement
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import (
    BY_NUMPY,
    VOLATILE,
    TensorBase,
    any_volatile,
    check_writable,
    expose,
    refresh,
    too_large,
)
from graphc.tensors.views import view_of, write_tangents, write_through

_CHECKED_LIMIT = 20_000


class Checked(NamedTuple):
    """What is known of an op with certain operand types and attributes: it fits, and how to run it."""

    attrs: dict[str, Any]
    compute: Callable[..., Any]
    """Arrays and attributes to the array of the result, or a tuple of arrays."""
    aliases: bool
    """Whether the results may share memory with operand 0 and count as its views."""
    views: bool
    """Whether the reference may return memory of an operand."""


class EagerDispatcher:
    """Computes with numpy."""

    def __init__(self, mode: str = "auto") -> None:
        self.mode = mode
        """``reference``: an op is computed by its reference and by nothing else; ``auto`` may choose."""
        self._checked: dict[Any, Checked] = {}

    def set_mode(self, mode: str) -> None:
        """Changes what ops are computed by, from the next one on."""
        self.mode = mode
        self._checked.clear()

    # ---- applying ops

    def apply(self, op: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """The result, or a tuple of them; raises what the op's type rule raises."""
        arrays = []
        needs_grad = elsewhere = False
        try:
            for tensor in operands:
                if tensor._view is not None:
                    refresh(tensor)
                data = tensor._data
                if data.__class__ is not np.ndarray:
                    elsewhere = _must_be_on_device(tensor)
                arrays.append(data)
                needs_grad = needs_grad or tensor._requires_grad
        except AttributeError:
            check_tensors(op, operands)
            raise
        checked = self._check(op, operands, arrays, attrs)
        found = placement().compute(op, checked.attrs, arrays) if elsewhere else _computed(op, checked, arrays)
        if found.__class__ is tuple:
            results = tuple([self._wrap(array, checked, arrays) for array in found])
        else:
            results = (self._wrap(found, checked, arrays),)
        if VOLATILE[0] and any_volatile(operands, results):
            needs_grad = False
        if needs_grad and is_grad_enabled():
            record(op, checked.attrs, operands, results)
        if USED[0] and has_tangents(operands):
            propagate(op, checked.attrs, operands, results)
        if checked.aliases:
            self._alias(op, checked, operands[0], results[0])
        return results if found.__class__ is tuple else results[0]

    def _check(self, op: OpDef, operands: Sequence[Any], arrays: list[np.ndarray], attrs: Mapping[str, Any]) -> Checked:
        """The op's type rule, run once for each combination of types and attributes."""
        key = (op, tuple(attrs.items()), *[(a.dtype, a.shape) for a in arrays])
        try:
            found = self._checked.get(key)
        except TypeError:
            return self._check_now(op, operands, attrs)
        if found is None:
            found = self._check_now(op, operands, attrs)
            if len(self._checked) >= _CHECKED_LIMIT:
                self._checked.clear()
            self._checked[key] = found
        return found

    def _check_now(self, op: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Checked:
        try:
            full = op.normalize(attrs)
            op.result_types(tuple(TensorType(t.dtype, t.shape) for t in operands), full)
        except GraphcError as error:
            error.where = error.where or describe(op, operands, attrs)
            raise
        return Checked(full, self._implementation(op), op.alias is not None, op.has(Trait.VIEW))

    def _implementation(self, op: OpDef) -> Callable[..., Any]:
        """What computes the op. The reference is the only way there is, in ``auto`` too; a second one is chosen here
        and nowhere else, and never where ``mode`` is ``reference``."""
        if op.reference is None:
            raise GraphcError(f"op {op.name} cannot run eagerly")
        return op.reference

    def _wrap(self, array: Any, checked: Checked, arrays: list[np.ndarray]) -> Tensor:
        if array.__class__ is not np.ndarray:
            array = array if is_on_device(array) else np.asarray(array)
        elif checked.views and not checked.aliases and any(np.may_share_memory(array, a) for a in arrays):
            array = array.copy()
        tensor = object.__new__(Tensor)
        tensor._data = array
        tensor.dtype = BY_NUMPY[array.dtype]
        tensor._counter = None if is_inference_mode_enabled() else [0]
        return tensor

    def _alias(self, op: OpDef, checked: Checked, operand: Tensor, result: Tensor) -> None:
        """Makes ``result`` a view of ``operand`` where they share memory, be it none at all."""
        if result._data.size and not _share_memory(result._data, operand._data):
            return
        result._counter = operand._counter
        result._view = view_of(operand, op, checked.attrs)
        result._seen = 0 if operand._counter is None else operand._counter[0]
        result._detached = operand._detached or op.detaches or not is_grad_enabled()

    def scalar(self, value: bool | int | float, dtype: DType) -> Tensor:
        """A tensor without dimensions."""
        return Tensor._wrap(elements(value, dtype) if dtype is bfloat16 else np.array(value, dtype.numpy))

    # ---- what tensors ask for

    def constant(self, array: np.ndarray) -> Tensor:
        """A tensor that owns the array."""
        tensor = Tensor._wrap(array)
        if is_inference_mode_enabled():
            tensor._counter = None
        return tensor

    def values(self, tensor: Tensor, purpose: str) -> np.ndarray:
        """The tensor's array."""
        data = tensor._data
        if data.__class__ is np.ndarray:
            return data
        if not is_on_device(data):
            raise escaped(tensor)
        if purpose == "numpy()":
            raise DeviceError(f"a tensor on {tensor.device} has no numpy array", remedy="tensor.cpu().numpy()")
        return data.get()

    def moved(self, tensor: Tensor, place: device) -> Tensor:
        """A copy on another device, through which gradients flow."""
        result = shape.reshape(tensor, shape=tensor.shape)
        result._data = placement().put(refresh(tensor)._data, place)
        result._view, result._detached = None, False
        result._counter = None if is_inference_mode_enabled() else [0]
        if result._node is not None:
            back = tensor.device
            result._node.register_prehook(lambda grads: tuple([None if g is None else g.to(back) for g in grads]))
        return result

    def before_write(self, tensor: Tensor, *others: Any) -> Tensor:
        """The tensor itself, or a copy at the same place in the graph where the operation is recorded."""
        refresh(tensor)
        check_writable(tensor)
        needed = tensor._requires_grad or any([isinstance(t, TensorBase) and t._requires_grad for t in others])
        if not (needed and is_grad_enabled()):
            return tensor
        copy = Tensor._wrap(tensor._data.copy())
        copy._node, copy._index, copy._requires_grad = tensor._node, tensor._index, tensor._requires_grad
        copy._tangents = tensor._tangents
        return copy

    def assign(self, tensor: Tensor, value: Tensor) -> None:
        """Copies ``value`` into the tensor's memory; where it is recorded, the tensor takes over its history."""
        refresh(tensor)
        check_writable(tensor)
        data = tensor._data
        if data.__class__ is not np.ndarray and not is_on_device(data):
            raise escaped(tensor)
        if not data.flags.writeable:
            raise ArgumentError(
                "the tensor cannot be written to: its elements share memory (it is expanded) or its array is read-only",
                remedy="tensor.clone()",
            )
        if journal.USED[0] and tensor._node is None and not tensor._requires_grad:
            journal.note_write(data, tensor._counter)
        if is_grad_enabled() and (value._requires_grad or tensor._requires_grad):
            write_through(tensor, value)
        if USED[0]:
            write_tangents(tensor, value)
        if data.__class__ is value._data.__class__ is np.ndarray:
            np.copyto(data, value._data)
        else:
            placement().write(data, value._data)
        if tensor._counter is not None:
            tensor._counter[0] += 1

    def unrecorded(self, tensor: Tensor, value: Tensor) -> Any:
        """The value's array: eager tensors hold what is written to their memory."""
        return value._data

    def own(self, tensor: Tensor) -> Tensor:
        """The tensor with a copy of its data."""
        data = tensor._data
        tensor._data = np.array(data, order="C") if data.__class__ is np.ndarray else data.copy()
        tensor._view = None
        tensor._detached = False
        tensor._counter = None if is_inference_mode_enabled() else [0]
        return tensor

    def rebind(self, tensor: Tensor, source: Tensor) -> None:
        """Points the tensor to the memory of ``source``."""
        if source.shape != tensor.shape and tensor._node is not None:
            raise GradientError("data of the result of an operation keeps its shape")
        mutation_epoch.note()
        tensor._data = source._data if is_on_device(source._data) else self.values(source, "data")
        tensor.dtype = source.dtype
        before = -1 if tensor._counter is None else tensor._counter[0]
        tensor._counter = source._counter
        if source._counter is None:
            tensor._counter = [before + 1]
            expose(tensor)

    def layout(self, tensor: Tensor) -> np.ndarray:
        """The tensor's array."""
        return tensor._data if is_on_device(tensor._data) else self.values(tensor, "the layout")

    def lay_out(self, tensor: Tensor, like: Tensor) -> None:
        """Arrays say themselves how they lie in memory."""

    def local(self, tensor: Any) -> Any:
        """The tensor itself."""
        return tensor

    def known(self, tensor: Tensor) -> np.ndarray:
        """The tensor's elements."""
        return on_host(tensor._data)

    def leaf(self, tensor: Any, clears: bool = False) -> Any:
        """The tensor itself."""
        return tensor

    def backward(
        self, tensors: Any, gradients: Any, retain_graph: bool | None, create_graph: bool, inputs: Any
    ) -> None:
        """Runs the backward pass."""
        engine.backward(tensors, gradients, retain_graph, create_graph, inputs)


def _must_be_on_device(tensor: Tensor) -> bool:
    """True; raises TraceError for a tensor that is neither an array nor on a device."""
    if not is_on_device(tensor._data):
        raise escaped(tensor)
    return True


def _share_memory(first: Any, second: Any) -> bool:
    if first.__class__ is second.__class__ is np.ndarray:
        return np.may_share_memory(first, second)
    return placement().share(first, second)


def check_tensors(op: OpDef, operands: Sequence[Any]) -> None:
    """Raises ArgumentError where an op is applied to what is no tensor."""
    for operand in operands:
        if not isinstance(operand, Tensor):
            raise no_tensor(op.name, operand)


def escaped(tensor: Any) -> TraceError:
    """The error of a traced tensor that is used when its trace is over."""
    return TraceError(
        f"a tensor traced as %{tensor._data.name} is used outside of its trace",
        remedy="return it from the traced function instead of keeping it",
    )


EAGER = EagerDispatcher(config.read().eager)
dispatch.set_default(EAGER)


def eager() -> EagerDispatcher:
    """The one that is installed, for who asks before anything of graphc has been used."""
    return EAGER


@contextmanager
def references() -> Iterator[None]:
    """Inside, eager mode computes every op by its numpy reference, as with GRAPHC_EAGER=reference, in all threads."""
    before = EAGER.mode
    EAGER.set_mode("reference")
    try:
        yield
    finally:
        EAGER.set_mode(before)


def _computed(op: OpDef, checked: Checked, arrays: list[np.ndarray]) -> Any:
    try:
        with np.errstate(all="ignore"):
            return checked.compute(*arrays, **checked.attrs)
    except MemoryError as error:
        raise too_large(op.name, error) from None
