"""Eager dispatcher: compute every op at once by its numpy reference, and record it for gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import Context, copy_context
from typing import Any

import numpy as np

from graphc.autograd import engine
from graphc.autograd.forward_ad import propagate
from graphc.autograd.record import record
from graphc.base import config, mutation_epoch
from graphc.base.device import device
from graphc.base.dtypes import SMALL, DType, float32, rounded, zero_dimensional
from graphc.base.errors import ArgumentError, DeviceError, GradientError, GraphcError, TraceError
from graphc.base.progress import OP, shown
from graphc.ir.graph.build import describe
from graphc.ir.op import OpDef, Trait
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.define import Scalar, as_type, element, no_tensor
from graphc.ops.movement import shape
from graphc.ops.narrow import Promotion, is_narrow
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.prepared import bound
from graphc.tape.grad_mode import is_grad_enabled, is_inference_mode_enabled
from graphc.tape.tangents import USED, has_tangents
from graphc.tensors import journal, routes
from graphc.tensors.placement import is_on_device, on_host, placement
from graphc.tensors.routes import Route
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
from graphc.tensors.views import become_view, write_tangents, write_through

_PLANS = 20_000
"""Largest number of cached plans."""


class ExecutionPlan:
    """Execution plan of an op for given operand types and attributes, after its type rule has accepted them."""

    __slots__ = ("aliases", "attrs", "compute", "has_context", "is_quiet", "op", "scalars", "steps", "views")

    def __init__(self, op: OpDef, attrs: dict[str, Any], compute: Callable[..., Any]):
        self.op = op
        self.attrs = attrs
        self.compute = bound(compute, attrs)
        """Function from arrays to the array of the result, or to a tuple of arrays."""
        self.scalars: tuple[tuple[int, DType, np.dtype], ...] = ()
        """For each operand passed as a Python scalar: its position, and the element type to convert it to."""
        self.aliases = op.alias is not None
        """Whether the results may share memory with operand 0 and count as its views."""
        self.steps = ((op, attrs),)
        """Ops and attributes that derive such a view from operand 0."""
        self.views = op.has(Trait.VIEW) and not self.aliases
        """Whether the reference may return memory of an operand although the result must own its memory."""
        self.is_quiet = self.aliases and not op.module
        """Whether the op computes no element, so numpy cannot warn."""
        calls_back = op.has_any(_CALLS_BACK) or any(a.kind == "graph" for a in op.attrs) or bool(op.module)
        self.has_context = not calls_back
        """Whether the reference runs numpy only and no user code, and so may run in a context of its own."""


_CALLS_BACK = Trait.HOST | Trait.ORDERED | Trait.EFFECT
_new = object.__new__
_PYTHON = frozenset((bool, int, float))


class EagerDispatcher:
    """Dispatcher that computes with numpy."""

    def __init__(self, mode: str = "auto") -> None:
        self.mode = mode
        """``reference`` computes every op by its reference; ``auto`` may choose another implementation."""
        self._plans: dict[Any, Any] = {}
        self._contexts: list[Context] = []

    def set_mode(self, mode: str) -> None:
        """Change the implementation of ops, from the next call on."""
        self.mode = mode
        self._plans.clear()
        routes.forget()

    # ---- applying ops

    def apply(self, op: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Return the result, or a tuple of results; raise the errors of the op's type rule."""
        return self.call(op, operands, attrs)

    @shown(OP, lambda call: getattr(call["function"], "op", call["function"]).name)
    def call(self, function: Any, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Apply an op, or an op function, which also takes Python scalars and promotes element types.

        NOTE: every op of eager mode goes through these lines; their time is the cost of small tensors.
        """
        arrays: list[Any] = []
        key: list[Any] = [function]
        try:
            records = _collect_arrays(operands, arrays, key)
        except AttributeError:
            return self._converted(function, operands, attrs)
        if records is None:
            return self._call_on_device(function, operands, attrs)
        if attrs:
            key += attrs.items()
        try:
            plan = self._plans[tuple(key)]
        except (KeyError, TypeError):  # TypeError: attributes that have no hash
            plan = self._new_plan(function, operands, attrs, key)
        if plan.__class__ is Promotion:
            return self._converted(function, operands, attrs, plan)
        if plan.scalars:
            operands = self._with_scalars(plan, operands, arrays, records)
        output = self._compute(plan, arrays)
        if output.__class__ is tuple:
            results = tuple([self._wrap(array, plan, arrays) for array in output])
            self._note(plan, operands, results, records)
            return results
        result = self._wrap(output, plan, arrays)
        if plan.aliases:
            self._alias(plan, operands[0], result)
        if records or VOLATILE[0] or USED[0]:
            self._note(plan, operands, (result,), records)
        return result

    def _note(self, plan: ExecutionPlan, operands: Sequence[Any], results: tuple[Any, ...], records: bool) -> None:
        """Make the results part of the autograd graph, and propagate tangents."""
        if VOLATILE[0] and any_volatile(operands, results):
            records = False
        if records and is_grad_enabled():
            record(plan.op, plan.attrs, operands, results)
        if USED[0] and has_tangents(operands):
            propagate(plan.op, plan.attrs, operands, results)

    def _compute(self, plan: ExecutionPlan, arrays: list[Any]) -> Any:
        try:
            if plan.is_quiet:
                return plan.compute(*arrays)
            if plan.has_context:
                return self._in_context(plan.compute, arrays)
            with np.errstate(all="ignore"):
                return plan.compute(*arrays)
        except MemoryError as error:
            raise too_large(plan.op.name, error) from None

    def _in_context(self, compute: Callable[..., Any], arrays: list[Any]) -> Any:
        """Run ``compute`` in a context with numpy's warnings off; this takes a fifth of the time of ``np.errstate``."""
        try:
            context = self._contexts.pop()
        except IndexError:
            context = _quiet_context()
        try:
            # NOTE: passing one or two arrays by name takes a third less time than unpacking a list.
            match len(arrays):
                case 1:
                    return context.run(compute, arrays[0])
                case 2:
                    return context.run(compute, arrays[0], arrays[1])
            return context.run(compute, *arrays)
        finally:
            self._contexts.append(context)

    def _new_plan(self, function: Any, operands: Sequence[Any], attrs: Mapping[str, Any], key: list[Any]) -> Any:
        """Run the op's type rule, once for each combination of types and attributes. Return the plan, or the
        conversions around the op where element types must be promoted first."""
        plan = self._plan_for(function, operands, attrs)
        if len(self._plans) >= _PLANS:
            self._plans.clear()
        with suppress(TypeError):
            self._plans[tuple(key)] = plan
        return plan

    def _plan_for(self, function: Any, operands: Sequence[Any], attrs: Mapping[str, Any]) -> ExecutionPlan | Promotion:
        if function.__class__ is OpDef:
            if any([t.__class__ in _PYTHON for t in operands]):
                check_tensors(function, operands)
            return self._checked(function, operands, attrs)
        promotion = function.promotion(_types(function.op, operands), attrs)
        if promotion.result is not None or promotion.attrs is not attrs or len(promotion.stages) > 1:
            return promotion
        numbers = [i for i, t in enumerate(operands) if t.__class__ in _PYTHON]
        casts = [(i, dtype) for types in promotion.stages for i, dtype in enumerate(types) if dtype is not None]
        if casts and (is_narrow(operands, attrs) or any([i not in numbers for i, _ in casts])):
            return promotion
        if len(casts) < len(numbers):
            check_tensors(function.op, operands)
        converted = list(operands)
        for i, dtype in casts:
            converted[i] = TensorType(dtype)
        plan = self._checked(function.op, converted, attrs)
        plan.scalars = tuple([(i, d, d.numpy) for i, d in casts])
        return plan

    def _converted(
        self,
        function: Any,
        operands: Sequence[Any],
        attrs: Mapping[str, Any],
        promotion: Promotion | None = None,
    ) -> Any:
        """Cast the operands, then call the op and round its results; raise ArgumentError for other objects than
        tensors."""
        if function.__class__ is OpDef:
            check_tensors(function, operands)
            return self.call(function, operands, attrs)
        op = function.op
        around: Promotion = promotion or function.promotion(_types(op, operands), attrs)
        narrow, tensors = around.result, operands
        for casts in around.stages:
            tensors = [t if d is None else self._cast(t, d) for t, d in zip(tensors, casts, strict=True)]
        check_tensors(op, tensors)
        results = self.call(op, tensors, around.attrs)
        if narrow is None:
            return results
        if isinstance(results, tuple):
            return tuple([self._cast(t, narrow) if t.dtype is float32 else t for t in results])
        return self._cast(results, narrow) if results.dtype is float32 else results

    def _cast(self, operand: Any, dtype: DType) -> Any:
        if not isinstance(operand, Tensor):
            return as_type(operand, dtype)
        return operand if operand.dtype is dtype else self.call(ew.cast, (operand,), {"dtype": dtype})

    def _with_scalars(
        self, plan: ExecutionPlan, operands: Sequence[Any], arrays: list[Any], records: bool
    ) -> Sequence[Any]:
        """Replace Python scalars by arrays. Return the operands, with tensors for the scalars where autograd needs
        them."""
        for i, dtype, numpy in plan.scalars:
            value = arrays[i] if dtype.kind == "f" else element(arrays[i], dtype)
            arrays[i] = np.array(value, numpy) if abs(value) <= SMALL else rounded(value, dtype)
        if not (records or USED[0] or VOLATILE[0]):
            return operands
        tensors = list(operands)
        for i, _, _ in plan.scalars:
            tensors[i] = Tensor._wrap(arrays[i])
        return tensors

    def _call_on_device(self, function: Any, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Call an op with an operand on a device. Raise TraceError for a traced operand whose trace has ended."""
        if function.__class__ is not OpDef:
            return self._converted(function, operands, attrs)
        check_tensors(function, operands)
        for tensor in operands:
            if refresh(tensor)._data.__class__ is not np.ndarray and not is_on_device(tensor._data):
                raise escaped(tensor)
        arrays = [tensor._data for tensor in operands]
        plan = self._checked(function, operands, attrs)
        output = placement().compute(function, plan.attrs, arrays)
        results = tuple([self._wrap(a, plan, arrays) for a in (output if output.__class__ is tuple else (output,))])
        if plan.aliases:
            self._alias(plan, operands[0], results[0])
        self._note(plan, operands, results, any([t._requires_grad for t in operands]))
        return results if output.__class__ is tuple else results[0]

    def _checked(self, op: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any]) -> ExecutionPlan:
        try:
            full = op.normalize(attrs)
            op.check_count(len(operands))
            op.infer(*[TensorType(t.dtype, t.shape) for t in operands], **full)
        except GraphcError as error:
            error.where = error.where or describe(op, operands, attrs)
            raise
        return ExecutionPlan(op, full, self._implementation(op))

    def _implementation(self, op: OpDef) -> Callable[..., Any]:
        """Return the implementation of the op. Today this is its reference in every mode; another one may only be
        chosen here, and never where ``mode`` is ``reference``."""
        if op.reference is None:
            raise GraphcError(f"op {op.name} cannot run eagerly")
        return op.reference

    def _wrap(self, array: Any, plan: ExecutionPlan, arrays: list[np.ndarray]) -> Tensor:
        if array.__class__ is not np.ndarray:
            array = array if is_on_device(array) else np.asarray(array)
        elif plan.views and array.base is not None and any([np.may_share_memory(array, a) for a in arrays]):
            array = array.copy()
        return self.constant(array)

    def _alias(self, plan: ExecutionPlan, operand: Tensor, result: Tensor) -> None:
        """Make ``result`` a view of ``operand`` where they share memory, or where it has no elements."""
        if not result._data.size or _share_memory(result._data, operand._data):
            become_view(result, operand, plan.steps, plan.op.detaches)

    def view(self, tensor: Tensor, route: Route) -> Tensor:
        """Return the view of a tensor, an array of the layout for which the route is valid."""
        if tensor._view is not None:
            refresh(tensor)
        if VOLATILE[0] or USED[0]:
            for op, attrs in route.steps:
                tensor = self.call(op, (tensor,), attrs)
            return tensor
        records = tensor._requires_grad and not route.detaches and is_grad_enabled()
        for make, steps in route.stages if records else route.combined:
            result = _new(Tensor)
            result._data = make(tensor._data)
            result.dtype = tensor.dtype
            become_view(result, tensor, steps, route.detaches)
            if records:
                record(*steps[0], (tensor,), (result,))
            tensor = result
        return tensor

    def scalar(self, value: bool | int | float, dtype: DType) -> Tensor:
        """Return a tensor without dimensions."""
        return Tensor._wrap(zero_dimensional(value, dtype))

    # ---- operations of tensors

    def constant(self, array: np.ndarray) -> Tensor:
        """Return a tensor that owns the array."""
        tensor = _new(Tensor)
        tensor._data = array
        tensor.dtype = BY_NUMPY[array.dtype]
        tensor._counter = None if is_inference_mode_enabled() else [0]
        return tensor

    def values(self, tensor: Tensor, purpose: str) -> np.ndarray:
        """Return the tensor's array, copied from the device if necessary."""
        data = tensor._data
        if data.__class__ is np.ndarray:
            return data
        if not is_on_device(data):
            raise escaped(tensor)
        if purpose == "numpy()":
            raise DeviceError(f"a tensor on {tensor.device} has no numpy array", remedy="call tensor.cpu().numpy()")
        return data.get()

    def moved(self, tensor: Tensor, target: device) -> Tensor:
        """Copy the tensor to another device; gradients flow through the copy."""
        result = shape.reshape(tensor, shape=tensor.shape)
        result._data = placement().put(refresh(tensor)._data, target)
        result._view, result._detached = None, False
        result._counter = None if is_inference_mode_enabled() else [0]
        if result._node is not None:
            source = tensor.device
            result._node.register_prehook(lambda grads: tuple([None if g is None else g.to(source) for g in grads]))
        return result

    def before_write(self, tensor: Tensor, *others: Any) -> Tensor:
        """Return the tensor itself or, where the operation is recorded, a copy with the same history."""
        refresh(tensor)
        check_writable(tensor)
        needs_grad = tensor._requires_grad or any([isinstance(t, TensorBase) and t._requires_grad for t in others])
        if not (needs_grad and is_grad_enabled()):
            return tensor
        copy = Tensor._wrap(tensor._data.copy())
        copy._node, copy._index, copy._requires_grad = tensor._node, tensor._index, tensor._requires_grad
        copy._tangents = tensor._tangents
        return copy

    def assign(self, tensor: Tensor, value: Tensor) -> None:
        """Copy ``value`` into the tensor's memory; where this is recorded, the tensor takes over its history."""
        refresh(tensor)
        check_writable(tensor)
        data = tensor._data
        if data.__class__ is not np.ndarray and not is_on_device(data):
            raise escaped(tensor)
        if not data.flags.writeable:
            raise ArgumentError(
                "the tensor cannot be written to: its elements share memory (it is expanded) or its array is read-only",
                remedy="write to tensor.clone() instead",
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
        """Return the value's array: eager tensors are written in memory."""
        return value._data

    def own(self, tensor: Tensor) -> Tensor:
        """Give the tensor a copy of its data."""
        data = tensor._data
        tensor._data = np.array(data, order="C") if data.__class__ is np.ndarray else data.copy()
        tensor._view = None
        tensor._detached = False
        tensor._counter = None if is_inference_mode_enabled() else [0]
        return tensor

    def rebind(self, tensor: Tensor, source: Tensor) -> None:
        """Point the tensor to the memory of ``source``."""
        if source.shape != tensor.shape and tensor._node is not None:
            raise GradientError(
                "data of the result of an operation keeps its shape: "
                f"it has shape {list(tensor.shape)}, the new data {list(source.shape)}"
            )
        mutation_epoch.note()
        tensor._data = source._data if is_on_device(source._data) else self.values(source, "data")
        tensor.dtype = source.dtype
        before = -1 if tensor._counter is None else tensor._counter[0]
        tensor._counter = source._counter
        if source._counter is None:
            tensor._counter = [before + 1]
            expose(tensor)

    def layout(self, tensor: Tensor) -> np.ndarray:
        """Return the tensor's array, whose strides are its layout."""
        return tensor._data if is_on_device(tensor._data) else self.values(tensor, "the layout")

    def lay_out(self, tensor: Tensor, like: Tensor) -> None:
        """Do nothing: arrays carry their layout."""

    def local(self, tensor: Any) -> Any:
        """Return the tensor itself."""
        return tensor

    def known(self, tensor: Tensor) -> np.ndarray:
        """Return the tensor's elements on the host."""
        return on_host(tensor._data)

    def size(self, count: Tensor, most: Any, purpose: str) -> int:
        """Return a count of one element."""
        return int(self.known(count).reshape(-1)[0])

    def leaf(self, tensor: Any, clears: bool = False) -> Any:
        """Return the tensor itself."""
        return tensor

    def backward(
        self, tensors: Any, gradients: Any, retain_graph: bool | None, create_graph: bool, inputs: Any
    ) -> None:
        """Run the backward pass."""
        engine.backward(tensors, gradients, retain_graph, create_graph, inputs)


def _types(op: OpDef, operands: Sequence[Any]) -> list[Any]:
    """Return the types of tensors; Python scalars stay as they are. Raise ArgumentError for other objects."""
    types = []
    for operand in operands:
        if isinstance(operand, Tensor):
            operand = TensorType(operand.dtype, operand._data.shape)
        elif not isinstance(operand, Scalar):
            raise no_tensor(op.name, operand)
        types.append(operand)
    return types


def _collect_arrays(operands: Sequence[Any], arrays: list[Any], key: list[Any]) -> bool | None:
    """Collect the arrays of the operands and the key of the call; Python scalars stay as they are. Return whether an
    operand requires gradients, or None where an operand is on a device or traced."""
    records = False
    for tensor in operands:
        kind = tensor.__class__
        if kind is not Tensor and kind in _PYTHON:
            arrays.append(tensor)
            key.append(kind)
            continue
        if tensor._view is not None:
            refresh(tensor)
        data = tensor._data
        if data.__class__ is not np.ndarray:
            return None
        arrays.append(data)
        key.append(data.dtype)
        key.append(data.shape)
        if tensor._requires_grad:
            records = True
    return records


def _quiet_context() -> Context:
    """Return a context in which numpy ignores overflow, division by zero and NaN."""
    context = copy_context()
    context.run(np.seterr, all="ignore")
    return context


def _share_memory(first: Any, second: Any) -> bool:
    if first.__class__ is second.__class__ is np.ndarray:
        base = first.base
        return (base is not None and (base is second or base is second.base)) or np.may_share_memory(first, second)
    return placement().share(first, second)


def check_tensors(op: OpDef, operands: Sequence[Any]) -> None:
    """Raise ArgumentError for operands other than tensors."""
    for operand in operands:
        if not isinstance(operand, Tensor):
            raise no_tensor(op.name, operand)


def escaped(tensor: Any) -> TraceError:
    """Build the error for a traced tensor used after its trace has ended."""
    return TraceError(
        f"a tensor traced as %{tensor._data.name} is used outside of its trace",
        remedy="return it from the traced function instead of keeping it",
    )


EAGER = EagerDispatcher(config.read().eager)
dispatch.set_default(EAGER)


def eager() -> EagerDispatcher:
    """Return the installed dispatcher; usable before any other part of graphc."""
    return EAGER


@contextmanager
def references() -> Iterator[None]:
    """Compute every op by its numpy reference inside the ``with`` block, as with GRAPHC_EAGER=reference, in all
    threads."""
    before = EAGER.mode
    EAGER.set_mode("reference")
    try:
        yield
    finally:
        EAGER.set_mode(before)
