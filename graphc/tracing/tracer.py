"""The tracing dispatcher: appends a node for every op, and records it for gradients as in eager mode."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from graphc.autograd import engine
from graphc.autograd.forward_ad import propagate
from graphc.autograd.record import OpNode, record
from graphc.base import module_path
from graphc.base.dtypes import DType
from graphc.base.errors import TraceError, ValueNeededError
from graphc.base.location import Location, capture
from graphc.base.sizes.assumptions import expected
from graphc.base.sizes.size import is_size
from graphc.base.sizes.symbolic import NumberRecord, is_symbolic, place_of
from graphc.base.sizes.symbolic import value as value_of
from graphc.base.values import is_open
from graphc.eager.dispatcher import check_tensors, escaped
from graphc.guards.code_reads import unwatched
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import CONSTANT, INPUT, Graph, Node, Value, has_sizes
from graphc.ir.graph.interpret import live_nodes
from graphc.ir.op import OpDef, Trait
from graphc.ir.types import TensorType
from graphc.ops.define import as_type
from graphc.ops.effects.state import state_write, straight_through, untracked
from graphc.ops.movement.shape import reshape
from graphc.ops.size_numbers import number_of_sizes
from graphc.tape.grad_mode import is_grad_enabled, no_grad
from graphc.tape.node import Node as TapeNode
from graphc.tape.tangents import USED, has_tangents
from graphc.tensors.placement import OnOneDevice
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import VOLATILE, any_volatile, check_writable, is_counted, refresh, too_large
from graphc.tensors.views import become_view, write_tangents, write_through
from graphc.tracing.constructs import advice
from graphc.tracing.host import HostCalls, no_python, run_gradient_hook, watch_tensor
from graphc.tracing.training import Training, gradient_outside

Names = Mapping[int, tuple[str, str]]
"""Class (param or state) and path of tensors, by identity."""


class Captured:
    """A tensor from outside of the trace with the traced tensor that replaces it inside."""

    __slots__ = ("image", "origin", "read_at", "tensor", "value")

    def __init__(self, tensor: Tensor, value: Value, image: Tensor):
        self.tensor = tensor
        """The tensor outside."""
        self.value = value
        """Its content at entry: an argument of the graph or a constant."""
        self.image = image
        """The traced tensor; in-place operations change its value."""
        self.origin: Location | None = None
        """The line that first wrote to it."""
        self.read_at = capture(module_path.current_path())
        """The line that first used it."""


class Tracer(OnOneDevice):
    """Dispatcher that appends nodes to a graph. With a ``parent``, the graph is a sub-graph of the parent's."""

    def __init__(self, graph: Graph, names: Names | None = None, parent: Tracer | None = None):
        self.graph = graph
        self.parent = parent
        self.differentiable = is_grad_enabled()
        """Whether the graph may be differentiated, so that no_grad() inside must mark values."""
        self.binds_escaped = False
        """Whether outside tensors that can be changed unseen become arguments rather than constants."""
        self.hooked: list[Location] = []
        """Lines that registered a hook on a traced tensor."""
        self.captured: dict[int, Captured] = {}
        """Tensors from outside that were used, by identity, in order of first use."""
        self.lifted: dict[Value, Value] = {}
        """For a sub-graph: maps values of outer graphs to the arguments that they became."""
        self.origins: list[Tensor] = []
        """For a sub-graph: the parent's tensors of the ``lifted`` values, in order."""
        self._names: dict[int, tuple[str, str]] = dict(names or {})
        self._used_paths = {path for _, path in self._names.values()}
        self._known_roots: set[int] = set()
        self._layouts: dict[int, tuple[Tensor, np.ndarray]] = {}
        self._stopped: dict[Value, Value] = {}
        self._kept: list[Tensor] = []
        self._inside: dict[int, Tensor] = {}
        """Tensors of constants that were made during the trace."""
        self._by_image: dict[int, Captured] = {}
        self.arguments: frozenset[int] = frozenset()
        """Identities of the traced tensors that replace the function's arguments."""
        self.host: HostCalls | None = None
        """The Python functions that the graph calls; None if it must not call any."""
        self.training: Training | None = None
        """Gradients of tensors outside; None if the trace cannot reach them."""
        self.numbers: NumberRecord | None = None
        """The symbolic numbers that each call passes."""
        self.reads: Any = None
        """The values that each call reads (``tracing.reads.ValueReads``); None if calls read none."""
        self._site: tuple[Location | None, str] | None = None
        """Location, if it is known, and prefix of names for the gradient of one op; None outside of gradients."""
        self.asked: set[Node] = set()
        """Nodes whose values the traced code read, so that the graph depends on them invisibly."""

    # ---- applying ops

    def apply(self, op: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Append a node and return its traced result, or a tuple of them. Errors of the op's type rule name the user's
        line."""
        # The type rule of a user's op is code of the user.
        append = self._append if op.module else partial(unwatched, self._append)
        recording, operands, local, results = append(op, operands, attrs)
        tensors = [Tensor._wrap(v) for v in results]
        if VOLATILE[0]:
            any_volatile(operands, tensors)
        if op.detaches or (self.differentiable and not recording):
            self._stopped.update((v, v) for v in results)
        full = results[0].node.attrs if results else {}
        if recording and any(t._requires_grad for t in local):
            record(op, full, local, tensors)
        if USED[0] and has_tangents(local):
            propagate(op, full, local, tensors)
        if op.alias is not None:
            self._alias(op, full, local[0], tensors[0])
        return tensors[0] if len(tensors) == 1 else tuple(tensors)

    def _append(
        self, op: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any]
    ) -> tuple[bool, Sequence[Any], list[Any], tuple[Value, ...]]:
        """Append a node. Return whether autograd records it, its operands, those in this graph, and its results."""
        check_tensors(op, operands)
        attrs = {name: value_of(value) for name, value in attrs.items()}
        recording = is_grad_enabled()
        if VOLATILE[0] and any([t._volatile for t in operands]):
            recording = False
        if op.detaches or not recording:
            operands = [_without_history(t) for t in operands]
        local = [refresh(self.local(t)) for t in operands]
        values = [t._data for t in local]
        if self.differentiable and not recording:
            values = [self._stop(v) for v in values]
        if self._site is None:
            module = module_path.current_path()
            location, name = capture(module), f"{module}.{op.name}" if module else op.name
        else:
            location, name = self._site[0] or capture(module_path.current_path()), f"{self._site[1]}{op.name}"
        return recording, operands, local, emit(self.graph, op, values, attrs, location, name)

    def _stop(self, value: Value) -> Value:
        """Return ``value`` without gradient, for use under no_grad()."""
        if not value.dtype.is_differentiable or value.node.op is CONSTANT:
            return value
        stopped = self._stopped.get(value)
        if stopped is None:
            (stopped,) = emit(self.graph, untracked.op, (value,), {}, capture(module_path.current_path()))
            self._stopped[value] = self._stopped[stopped] = stopped
        return stopped

    def scalar(self, value: bool | int | float, dtype: DType) -> Tensor:
        """Return a scalar constant, or an argument of the outermost graph for a symbolic number."""
        if is_symbolic(value):
            argument = self._number(value, dtype)
            if argument is not None:
                return argument
            value = value_of(value)
        if is_open(value):
            return number_of_sizes(value, dtype)
        return Tensor._wrap(self.graph.scalar(value, dtype))

    def _number(self, value: Any, dtype: DType) -> Tensor | None:
        """Return the argument for a symbolic number; None if the graph must hold its value."""
        root = self
        while isinstance(root.parent, Tracer):
            root = root.parent
        record, slot = place_of(value)
        is_integer = isinstance(value, int)
        if record is not root.numbers or not record.is_open or dtype.kind not in ("iuf" if is_integer else "f"):
            return None
        argument = record.known(slot, dtype, lambda: root.graph.add_input(TensorType(dtype), "number"))
        tensor = Tensor._wrap(argument)
        return tensor if root is self else self.local(tensor)

    def known(self, tensor: Tensor) -> np.ndarray | None:
        """Return the elements of a constant, read through views; None if they may differ between calls."""
        value: Value = self.local(tensor)._data
        views: list[Node] = []
        while value.node.op.has(Trait.VIEW) and len(value.node.operands) == 1 and not any(map(is_size, value.shape)):
            views.append(value.node)
            value = value.node.operands[0]
        if value.node.op is not CONSTANT:
            return None
        array = value.node.attrs["value"]
        for view in reversed(views):
            (array,) = view.op.evaluate((array,), view.attrs)
        return array

    # ---- memory, as it would be laid out eagerly

    def layout(self, tensor: Tensor) -> np.ndarray:
        """Return an array with the strides the tensor would have in eager mode; its elements are meaningless."""
        tensor = self.local(tensor)
        entry = self._layouts.get(id(tensor))
        if entry is None:
            try:
                entry = (tensor, np.empty([expected(s) for s in tensor.shape], np.bool_))
            except MemoryError as error:
                raise too_large("the layout of a traced tensor", error) from None
            self._layouts[id(tensor)] = entry
        return entry[1]

    def _alias(self, op: OpDef, attrs: dict[str, Any], operand: Tensor, result: Tensor) -> None:
        before = self.layout(operand)
        if result.dtype is not operand.dtype:  # parts of complex numbers
            before = _laid_out(before, operand.dtype)
        after = self._reference(op, before, attrs, operand)
        self._layouts[id(result)] = (result, after)
        if not after.size or np.may_share_memory(before, after):
            become_view(result, operand, ((op, attrs),), False)

    @staticmethod
    def _reference(op: OpDef, layout: np.ndarray, attrs: dict[str, Any], operand: Tensor) -> np.ndarray:
        reference: Any = op.reference
        try:
            return reference(layout, **_expected(attrs))
        except ValueError:  # the assumptions hold for the sizes of the call, but not for larger ones
            exact = np.empty([expected(s, exact=True) for s in operand.shape], np.bool_)
            return reference(exact, **_expected(attrs, exact=True))

    def lay_out(self, tensor: Tensor, like: Tensor) -> None:
        """Give ``tensor`` the layout of ``like``; raise TraceError if they are from outside of the trace."""
        if self.local(like) is not like:
            raise TraceError(
                "a trace changes the shape of a tensor from outside in place",
                origin=capture(module_path.current_path()).describe(),
                remedy="call the method that returns a view: the name without the underscore",
            )
        self._layouts[id(tensor)] = (tensor, self.layout(like))

    def own(self, tensor: Tensor) -> Tensor:
        """Return the tensor with memory of its own."""
        self._layouts.pop(id(tensor), None)
        tensor._view, tensor._detached, tensor._counter = None, False, [0]
        return tensor

    # ---- tensors from outside

    def local(self, tensor: Any) -> Any:
        """Return the traced tensor for ``tensor``: itself, its image, or a new capture."""
        data = tensor._data
        capture_ = self.captured.get(id(tensor))
        if capture_ is not None:
            return capture_.image
        if isinstance(data, Value):
            if data.node in self.graph:
                return tensor
            if self.parent is None:
                raise escaped(tensor)
            return self._lift(tensor, self.parent.local(tensor))
        if self.parent is not None and id(tensor) not in self._inside:
            return self._lift(tensor, self.parent.local(tensor))
        return self._capture(tensor)

    def _remember(self, tensor: Tensor, value: Value) -> Tensor:
        image = Tensor._wrap(value)
        image._requires_grad = tensor._requires_grad and value.dtype.is_differentiable
        image._hooks = tensor._hooks
        self.captured[id(tensor)] = self._by_image[id(image)] = Captured(tensor, value, image)
        return image

    def _lift(self, tensor: Tensor, outer: Tensor) -> Tensor:
        value = refresh(outer)._data
        inner = self.lifted.get(value)
        if inner is None:
            inner = self.graph.add_input(value.type, value.name.rsplit(".", 1)[-1])
            self.lifted[value] = inner
            self.origins.append(outer)
        return self._remember(tensor, inner)

    def _capture(self, tensor: Tensor) -> Tensor:
        if tensor._node is not None:
            raise TraceError(
                f"the result of an earlier operation, {tensor.dtype.name}{list(tensor.shape)}, is used in a trace "
                "and would lose its history",
                origin=capture(module_path.current_path()).describe(),
                remedy="pass it as an argument of the traced function, or use tensor.detach()",
            )
        if has_tangents((tensor,)):
            raise TraceError(
                "a tensor with a tangent is used in a trace and would lose it",
                origin=capture(module_path.current_path()).describe(),
                remedy="call graphc.jvp inside of the traced function, with the tangent as an argument",
            )
        named = self._name_of(tensor)
        if named is not None:
            return self._remember(tensor, self._argument(tensor, *named))
        if tensor._requires_grad and id(tensor) not in self._inside:
            return self._remember(tensor, self._argument(tensor, "param", self._free_path()))
        if self.binds_escaped and id(tensor) not in self._inside and not is_counted(tensor):
            return self._remember(tensor, self._argument(tensor, "state", self._free_path()))
        array = tensor._data if tensor.shape else tensor._data.reshape(1)
        value = emit(self.graph, CONSTANT, (), {"value": array}, capture(module_path.current_path()))[0]
        if not tensor.shape:
            # Not an interned scalar, which others would share: a later write makes it an argument.
            value = emit(self.graph, reshape.op, (value,), {"shape": ()})[0]
        return self._remember(tensor, value)

    def _argument(self, tensor: Tensor, cls: str, path: str) -> Value:
        return self.graph.add_input(TensorType(tensor.dtype, tensor.shape), path, cls, path)

    def _free_path(self) -> str:
        return f"captured.{sum(v.node.attrs['path'].startswith('captured.') for v in self.graph.inputs)}"

    def _name_of(self, tensor: Tensor) -> tuple[str, str] | None:
        named = self._names.get(id(tensor))
        path = getattr(tensor, "_capture_path", None)
        if named is None and path is not None:
            named = ("state", self._unused(path))
        if named is None:
            root = module_path.outermost()
            if root is not None and id(root) not in self._known_roots:
                self._known_roots.add(id(root))
                self.add_names(named_tensors(root))
                named = self._names.get(id(tensor))
        return named

    def _unused(self, path: str) -> str:
        used_paths = {v.node.attrs["path"] for v in self.graph.inputs}
        number = 0
        free = path
        while free in used_paths:
            number += 1
            free = f"{path}.{number}"
        return free

    def add_names(self, named: Iterable[tuple[Tensor, str, str]]) -> None:
        """Register tensors as params and states; a path already used gets a number."""
        for tensor, cls, path in named:
            if id(tensor) in self._names:
                continue
            free, number = path, 0
            while free in self._used_paths:
                number += 1
                free = f"{path}.{number}"
            self._used_paths.add(free)
            self._names[id(tensor)] = (cls, free)
            self._kept.append(tensor)

    # ---- writing

    def before_write(self, tensor: Tensor, *others: Any) -> Tensor:
        """Return the content before an in-place operation: values of a graph never change, so this needs no copy."""
        image = refresh(self.local(tensor))
        check_writable(image)
        former = Tensor._wrap(image._data)
        former._node, former._index, former._requires_grad = image._node, image._index, image._requires_grad
        former._tangents = image._tangents
        if image._node is None and image._requires_grad:
            return image
        return former

    def assign(self, tensor: Tensor, value: Tensor) -> None:
        """Assign a new value to the tensor, its base and its other views."""
        image = refresh(self.local(tensor))
        check_writable(image)
        self._check_target(image)
        value = refresh(self.local(value))
        write_through(image, value)
        if USED[0]:
            write_tangents(image, value)
        if image._counter is not None:
            image._counter[0] += 1

    def unrecorded(self, tensor: Tensor, value: Tensor) -> Value:
        """Return the value with the gradient routed to the tensor's former content, if there is any."""
        if not self.differentiable or not value.dtype.is_differentiable:
            return value._data
        if not tensor._requires_grad:
            return self._stop(value._data) if value._requires_grad else value._data
        location = capture(module_path.current_path())
        return emit(self.graph, straight_through.op, (tensor._data, value._data), {}, location)[0]

    def _check_target(self, image: Tensor) -> None:
        """Turn a constant into a state argument when the traced function writes to its tensor."""
        captured = self._by_image.get(id(image if image._view is None else image._view.base))
        if captured is None:
            return
        captured.origin = captured.origin or capture(module_path.current_path())
        if captured.value.node.op is INPUT or id(captured.tensor) in self._inside:
            return
        if captured.tensor._view is not None:
            raise TraceError(
                "a trace writes to a view that was created before the trace",
                origin=captured.origin.describe(),
                remedy="index the tensor inside of the traced function, or make the view a buffer of a module",
            )
        if captured.value.node in self.asked:
            raise TraceError(
                "the traced function writes to a tensor from outside whose values it has read",
                origin=captured.origin.describe(),
                remedy="keep it as a Python number, or do not read its values",
            )
        argument = self._argument(captured.tensor, "state", self._free_path())
        self.graph.replace_uses(captured.value, argument)
        if captured.image._data is captured.value:
            captured.image._data = argument
        captured.value = argument

    def rebind(self, tensor: Tensor, source: Tensor) -> None:
        """Implement ``tensor.data = source`` as an assignment, since a graph has no memory."""
        if source.shape != tensor.shape or source.dtype is not tensor.dtype:
            raise TraceError(
                "a trace sets tensor.data to a tensor of another shape or type",
                origin=capture(module_path.current_path()).describe(),
                remedy="set it before the trace",
            )
        image = refresh(self.local(tensor))
        self._check_target(image)
        with no_grad():
            write_through(image, self.local(source))
        if image._counter is not None:
            image._counter[0] += 1

    def written(self) -> list[Captured]:
        """Return the captured tensors whose content has changed."""
        return [
            c
            for c in self.captured.values()
            if refresh(c.image)._data is not c.value and id(c.tensor) not in self._inside
        ]

    def is_inside(self, tensor: Tensor) -> bool:
        """Return whether the tensor is a constant created during the trace."""
        return id(tensor) in self._inside

    def finish_writes(self) -> None:
        """Append the last write of each param and state."""
        for entry in self.written():
            location = entry.origin or Location()
            value = entry.image._data
            emit(self.graph, state_write.op, (entry.value, value), {}, location, f"{entry.value.name}.next")

    def write(self, argument: Value, tensor: Tensor) -> Value:
        """Append the write of a param or state of the graph; return its new value in its own type."""
        value = as_type(self.local(tensor), argument.dtype)._data
        if value is not argument:
            emit(self.graph, state_write.op, (argument, value), {}, name=f"{argument.name}.next")
        return value

    # ---- values

    def constant(self, array: np.ndarray) -> Tensor:
        """Wrap an array in a tensor; it becomes a constant of the graph when it is used."""
        tensor = Tensor._wrap(array)
        self._inside[id(tensor)] = tensor
        return tensor

    def values(self, tensor: Tensor, purpose: str) -> np.ndarray:
        """Return the data of a tensor that depends on constants only; raise TraceError for any other tensor."""
        value = refresh(self.local(_without_history(tensor)))._data
        nodes = live_nodes(self.graph, [value])
        if any(not node.op.has(Trait.PURE) for node in nodes):
            raise value_needed(value, purpose)
        self.asked |= nodes
        arrays: dict[Value, np.ndarray] = {}
        for node in self.graph.nodes():
            if node in nodes:
                results = node.op.evaluate([arrays[v] for v in node.operands], node.attrs)
                arrays.update(zip(node.results, results, strict=True))
        return arrays[value]

    def size(self, count: Tensor, most: Any, purpose: str) -> Any:
        """Return a count that depends on constants only, else a size that each call reads."""
        value = refresh(self.local(count))._data
        if self.reads is None or not any(n.op is INPUT or has_sizes(n) for n in live_nodes(self.graph, [value])):
            return int(self.values(count, purpose).reshape(-1)[0])
        return self.reads.size(self, count, most, purpose)

    # ---- gradients

    def leaf(self, tensor: Any, clears: bool = False) -> Any:
        """Return the traced tensor whose ``grad`` is accessed. Raise TraceError for a tensor from outside if its
        gradient is out of reach."""
        image = self.local(tensor)
        captured = self._by_image.get(id(image))
        if (captured is None and id(image) not in self.arguments) or (
            captured is not None and self.is_inside(captured.tensor)
        ):
            return image
        if self.training is not None and captured is not None:
            return self.training.leaf(self, captured, clears)
        raise gradient_outside("" if captured is None or captured.value.node.op is not INPUT else captured.value.name)

    def locate(self, site: Any) -> Any:
        """Give the ops from now on the location of the op whose gradient they compute; return the former site.

        ``site`` is a node of the tape, a former site, or None for ops outside of gradients.
        """
        former, self._site = self._site, site
        value = site.results[0].data if isinstance(site, OpNode) else None
        if isinstance(value, Value):
            self._site = value.node.location, f"grad.{value.name}."
        elif isinstance(site, TapeNode):
            self._site = None, "grad."
        return former

    @staticmethod
    def run_rules(node: TapeNode, gradients: list[Any]) -> Sequence[Any]:
        """Run a node of the tape. Rules of the library run no code of a user."""
        if isinstance(node, OpNode) and not node.op.module:
            return unwatched(node.run, gradients)
        return node.run(gradients)

    def backward(
        self, tensors: Any, gradients: Any, retain_graph: bool | None, create_graph: bool, inputs: Any
    ) -> None:
        """Run the backward pass, which appends its operations."""
        if self.training is not None:
            self.training.require_finite(self, [tensors] if isinstance(tensors, Tensor) else tensors)
        engine.backward(tensors, gradients, retain_graph, create_graph, inputs)

    def run_hook(self, hook: Callable[[Tensor], Any], gradient: Tensor, name: str) -> Any:
        """Run a hook on a gradient, at each call if the graph calls Python; return its result."""
        if self.host is None:
            return hook(gradient)
        return run_gradient_hook(self, name, hook, gradient)

    def watch_tensor(self, tensor: Tensor) -> Any:
        """Return the hooks that see the gradient of a traced tensor at each call; None if the graph calls no Python.
        Raise TraceError in a sub-graph that calls none: its gradient would skip the hooks."""
        if self.host is None and self.parent is not None:
            raise no_python(self, "a hook of a tensor")
        return None if self.host is None else watch_tensor(self, tensor)

    def custom(
        self,
        name: str,
        context: Any,
        operands: Sequence[Any],
        forward: Callable[..., Any],
        backward: Callable[..., Any],
        again: Callable[..., Any] | None = None,
    ) -> Any:
        """Apply a custom function as a ``call`` of a forward and a backward sub-graph; as a host call if it is opaque
        or reads values."""
        # Imported here: that module imports this one.
        return import_module("graphc.tracing.custom").apply(self, name, context, operands, (forward, backward), again)


def _laid_out(layout: np.ndarray, dtype: DType) -> np.ndarray:
    """Return an array of another type with the memory order of ``layout``, element for element."""
    steps = [step // layout.itemsize for step in layout.strides]
    reach = 1 + sum(max(n - 1, 0) * step for n, step in zip(layout.shape, steps, strict=True))
    buffer = np.empty(reach, dtype.numpy)
    return as_strided(buffer, layout.shape, [step * buffer.itemsize for step in steps])


def _expected(attrs: Mapping[str, Any], exact: bool = False) -> dict[str, Any]:
    """Replace symbolic sizes in attributes by their expected values."""
    return {name: _expected_sizes(value, exact) for name, value in attrs.items()}


def _expected_sizes(value: Any, exact: bool) -> Any:
    if type(value) is tuple:
        return tuple([_expected_sizes(item, exact) for item in value])
    return expected(value, exact) if is_size(value) else value


def _without_history(tensor: Tensor) -> Tensor:
    """Return the result of an eager operation as a leaf that shares its memory, and other tensors unchanged."""
    if tensor._node is None or isinstance(tensor._data, Value):
        return tensor
    leaf = Tensor._make_subclass(Tensor, tensor)
    leaf._tangents = tensor._tangents
    return leaf


def named_tensors(root: Any) -> list[tuple[Tensor, str, str]]:
    """Return the parameters and buffers of a module with their class and path."""
    parameters = [(p, "param", path) for path, p in root.named_parameters()]
    return [*parameters, *((b, "state", path) for path, b in root.named_buffers())]


def value_needed(value: Value, purpose: str) -> ValueNeededError:
    """Return the error for code that reads the values of a traced tensor: the user's line, the value, and the
    remedy."""
    location = capture(module_path.current_path())
    line = f"{location.file}:{location.line}: " if location.file else ""
    producer = value.node.op.name if value.node.op is not INPUT else "an argument of the traced function"
    return ValueNeededError(
        f"{line}{purpose} needs the values of a traced tensor, which has none: {value.type}",
        where=f"%{value.name}: {value.type}, made by {producer}",
        origin=location.describe(),
        remedy=advice(purpose),
    )
