"""The tracing dispatcher: every op application appends a node, and is recorded for gradients as in eager mode."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from graphc.base import module_path
from graphc.base.dtypes import DType
from graphc.base.errors import TraceError, ValueNeededError
from graphc.base.location import Location, capture
from graphc.base.sizes.assumptions import expected
from graphc.base.sizes.size import is_size
from graphc.base.sizes.symbolic import NumberRecord, is_symbolic, place_of
from graphc.base.sizes.symbolic import value as value_of
from graphc.base.values import is_open
from graphc.eager import engine
from graphc.eager.dispatcher import check_tensors, escaped
from graphc.eager.forward_ad import propagate
from graphc.eager.record import record
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import CONSTANT, INPUT, Graph, Node, Value
from graphc.ir.graph.interpret import live_nodes
from graphc.ir.op import OpDef, Trait
from graphc.ir.types import TensorType
from graphc.ops.define import as_type
from graphc.ops.shape import reshape
from graphc.ops.size_numbers import number_of_sizes
from graphc.ops.state import state_write, straight_through, untracked
from graphc.tape.grad_mode import is_grad_enabled, no_grad
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
    """A tensor from outside of the trace, and what stands for it inside."""

    __slots__ = ("image", "origin", "read_at", "tensor", "value")

    def __init__(self, tensor: Tensor, value: Value, image: Tensor):
        self.tensor = tensor
        """The tensor outside."""
        self.value = value
        """Its content at entry: an argument of the graph or a constant."""
        self.image = image
        """The tensor that stands for it; in-place operations change what it holds."""
        self.origin: Location | None = None
        """The line that first wrote to it."""
        self.read_at = capture(module_path.current_path())
        """The line that first used it."""


class Tracer(OnOneDevice):
    """Appends nodes to a graph. With a ``parent`` the graph is a sub-graph of the parent's."""

    def __init__(self, graph: Graph, names: Names | None = None, parent: Tracer | None = None):
        self.graph = graph
        self.parent = parent
        self.differentiable = is_grad_enabled()
        """Whether the graph may be differentiated, so that no_grad() inside must leave marks."""
        self.binds_escaped = False
        """Whether tensors outside that can be written to unseen are arguments, and not constants."""
        self.hooked: list[Location] = []
        """Lines that gave a hook to a traced tensor."""
        self.captured: dict[int, Captured] = {}
        """Tensors that were used inside, by identity, in order of first use."""
        self.lifted: dict[Value, Value] = {}
        """For a sub-graph: values of outer graphs, and the arguments that they became."""
        self.origins: list[Tensor] = []
        """For a sub-graph: the parent's tensors behind ``lifted``, in order."""
        self._names: dict[int, tuple[str, str]] = dict(names or {})
        self._known_roots: set[int] = set()
        self._layouts: dict[int, tuple[Tensor, np.ndarray]] = {}
        self._stopped: dict[Value, Value] = {}
        self._kept: list[Tensor] = []
        self._inside: dict[int, Tensor] = {}
        """Tensors of constants that were made during the trace."""
        self._by_image: dict[int, Captured] = {}
        self.arguments: frozenset[int] = frozenset()
        """By identity: the tensors that stand for the arguments of the function."""
        self.host: HostCalls | None = None
        """The Python functions that the graph calls; None where it must call none."""
        self.training: Training | None = None
        """What becomes of gradients of tensors outside; None where they are out of reach."""
        self.numbers: NumberRecord | None = None
        """What becomes of the numbers that each call gives."""
        self._asked: set[Node] = set()
        """Nodes whose values were asked for, so that the graph depends on them in ways that it does not show."""

    # ---- applying ops

    def apply(self, op: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """The traced result, or a tuple of them; raises what the op's type rule raises, with the user's line."""
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
        module = module_path.current_path()
        results = emit(self.graph, op, values, attrs, capture(module), f"{module}.{op.name}" if module else op.name)
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

    def _stop(self, value: Value) -> Value:
        """``value`` without gradient, for use under no_grad()."""
        if not value.dtype.is_differentiable or value.node.op is CONSTANT:
            return value
        known = self._stopped.get(value)
        if known is None:
            (known,) = emit(self.graph, untracked.op, (value,), {}, capture(module_path.current_path()))
            self._stopped[value] = self._stopped[known] = known
        return known

    def scalar(self, value: bool | int | float, dtype: DType) -> Tensor:
        """A scalar constant; an argument of the outermost graph for a number that each call gives."""
        if is_symbolic(value):
            found = self._number(value, dtype)
            if found is not None:
                return found
            value = value_of(value)
        if is_open(value):
            return number_of_sizes(value, dtype)
        return Tensor._wrap(self.graph.scalar(value, dtype))

    def _number(self, value: Any, dtype: DType) -> Tensor | None:
        """The argument for a symbolic number; None where the graph must hold its value."""
        root = self
        while isinstance(root.parent, Tracer):
            root = root.parent
        record, slot = place_of(value)
        whole = isinstance(value, int)
        if record is not root.numbers or not record.is_open or dtype.kind not in ("iuf" if whole else "f"):
            return None
        made = record.known(slot, dtype, lambda: root.graph.add_input(TensorType(dtype), "number"))
        tensor = Tensor._wrap(made)
        return tensor if root is self else self.local(tensor)

    def known(self, tensor: Tensor) -> np.ndarray | None:
        """The elements of a constant, read through views; None where a call may have others."""
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
        """An array, whose elements mean nothing, with the strides that the tensor would have in eager mode."""
        tensor = self.local(tensor)
        known = self._layouts.get(id(tensor))
        if known is None:
            try:
                known = (tensor, np.empty([expected(s) for s in tensor.shape], np.bool_))
            except MemoryError as error:
                raise too_large("the layout of a traced tensor", error) from None
            self._layouts[id(tensor)] = known
        return known[1]

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
        except ValueError:  # what was assumed of sizes holds for those of the call, but not for larger ones
            exact = np.empty([expected(s, exact=True) for s in operand.shape], np.bool_)
            return reference(exact, **_expected(attrs, exact=True))

    def lay_out(self, tensor: Tensor, like: Tensor) -> None:
        """Gives ``tensor`` the layout of ``like``; raises TraceError when they are from outside of the trace."""
        if self.local(like) is not like:
            raise TraceError(
                "the shape of a tensor from outside is changed in place inside of a trace",
                origin=capture(module_path.current_path()).describe(),
                remedy="the method that returns a view: the name without the underscore",
            )
        self._layouts[id(tensor)] = (tensor, self.layout(like))

    def own(self, tensor: Tensor) -> Tensor:
        """The tensor as if with memory of its own."""
        self._layouts.pop(id(tensor), None)
        tensor._view, tensor._detached, tensor._counter = None, False, [0]
        return tensor

    # ---- tensors from outside

    def local(self, tensor: Any) -> Any:
        """The traced tensor that stands for ``tensor``: itself, its image, or a new capture."""
        data = tensor._data
        known = self.captured.get(id(tensor))
        if known is not None:
            return known.image
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
        found = self._names.get(id(tensor))
        path = getattr(tensor, "_capture_path", None)
        if found is None and path is not None:
            found = ("state", self._unused(path))
        if found is None:
            root = module_path.outermost()
            if root is not None and id(root) not in self._known_roots:
                self._known_roots.add(id(root))
                self.add_names(named_tensors(root))
                found = self._names.get(id(tensor))
        return found

    def _unused(self, path: str) -> str:
        taken = {v.node.attrs["path"] for v in self.graph.inputs}
        number = 0
        free = path
        while free in taken:
            number += 1
            free = f"{path}.{number}"
        return free

    def add_names(self, named: Iterable[tuple[Tensor, str, str]]) -> None:
        """Makes tensors known as params and states; paths that are taken get a number."""
        taken = {path for _, path in self._names.values()}
        for tensor, cls, path in named:
            if id(tensor) in self._names:
                continue
            free, number = path, 0
            while free in taken:
                number += 1
                free = f"{path}.{number}"
            taken.add(free)
            self._names[id(tensor)] = (cls, free)
            self._kept.append(tensor)

    # ---- writing

    def before_write(self, tensor: Tensor, *others: Any) -> Tensor:
        """The content before an in-place operation: values of a graph never change, so the image serves."""
        image = refresh(self.local(tensor))
        check_writable(image)
        before = Tensor._wrap(image._data)
        before._node, before._index, before._requires_grad = image._node, image._index, image._requires_grad
        before._tangents = image._tangents
        if image._node is None and image._requires_grad:
            return image
        return before

    def assign(self, tensor: Tensor, value: Tensor) -> None:
        """From now on the tensor, its base and its other views hold the new value."""
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
        """The value, whose gradient goes to what the tensor held before, where that has one."""
        if not self.differentiable or not value.dtype.is_differentiable:
            return value._data
        if not tensor._requires_grad:
            return self._stop(value._data) if value._requires_grad else value._data
        location = capture(module_path.current_path())
        return emit(self.graph, straight_through.op, (tensor._data, value._data), {}, location)[0]

    def _check_target(self, image: Tensor) -> None:
        """A tensor from outside that was captured as a constant and is written to becomes a state argument."""
        known = self._by_image.get(id(image if image._view is None else image._view.base))
        if known is None:
            return
        known.origin = known.origin or capture(module_path.current_path())
        if known.value.node.op is INPUT or id(known.tensor) in self._inside:
            return
        if known.tensor._view is not None:
            raise TraceError(
                "a view that was made before the trace is written to inside of it",
                origin=known.origin.describe(),
                remedy="index the tensor inside of the traced function, or make the view a buffer of a module",
            )
        if known.value.node in self._asked:
            raise TraceError(
                "a tensor from outside whose values the traced function asked for is written to",
                origin=known.origin.describe(),
                remedy="keep it as a Python number, or do not ask for its values",
            )
        argument = self._argument(known.tensor, "state", self._free_path())
        self.graph.replace_uses(known.value, argument)
        if known.image._data is known.value:
            known.image._data = argument
        known.value = argument

    def rebind(self, tensor: Tensor, source: Tensor) -> None:
        """``tensor.data = source``: as an assignment, since a graph has no memory."""
        if source.shape != tensor.shape or source.dtype is not tensor.dtype:
            raise TraceError(
                "data is replaced by a tensor of another shape or type inside of a trace",
                origin=capture(module_path.current_path()).describe(),
                remedy="do it before the trace",
            )
        image = refresh(self.local(tensor))
        self._check_target(image)
        with no_grad():
            write_through(image, self.local(source))
        if image._counter is not None:
            image._counter[0] += 1

    def written(self) -> list[Captured]:
        """Tensors from outside whose content has changed."""
        return [
            c
            for c in self.captured.values()
            if refresh(c.image)._data is not c.value and id(c.tensor) not in self._inside
        ]

    def is_inside(self, tensor: Tensor) -> bool:
        """Whether the tensor was made during the trace, of a constant."""
        return id(tensor) in self._inside

    def finish_writes(self) -> None:
        """Appends the writes of params and states, with the last value of each."""
        for entry in self.written():
            location = entry.origin or Location()
            value = entry.image._data
            emit(self.graph, state_write.op, (entry.value, value), {}, location, f"{entry.value.name}.next")

    def write(self, argument: Value, tensor: Tensor) -> Value:
        """Appends the write of a param or state of the graph; returns what it holds then, in its own type."""
        value = as_type(self.local(tensor), argument.dtype)._data
        if value is not argument:
            emit(self.graph, state_write.op, (argument, value), {}, name=f"{argument.name}.next")
        return value

    # ---- values

    def constant(self, array: np.ndarray) -> Tensor:
        """A tensor that owns the array; it becomes a constant of the graph where it is used."""
        tensor = Tensor._wrap(array)
        self._inside[id(tensor)] = tensor
        return tensor

    def values(self, tensor: Tensor, purpose: str) -> np.ndarray:
        """The data of what depends on constants only; raises TraceError for all other tensors."""
        value = refresh(self.local(_without_history(tensor)))._data
        nodes = live_nodes(self.graph, [value])
        if any(not node.op.has(Trait.PURE) for node in nodes):
            raise value_needed(value, purpose)
        self._asked |= nodes
        known: dict[Value, np.ndarray] = {}
        for node in self.graph.nodes():
            if node in nodes:
                results = node.op.evaluate([known[v] for v in node.operands], node.attrs)
                known.update(zip(node.results, results, strict=True))
        return known[value]

    # ---- gradients

    def leaf(self, tensor: Any, clears: bool = False) -> Any:
        """The traced tensor; its ``grad`` is seen inside only, so those of tensors from outside raise TraceError."""
        image = self.local(tensor)
        known = self._by_image.get(id(image))
        if (known is None and id(image) not in self.arguments) or (known is not None and self.is_inside(known.tensor)):
            return image
        if self.training is not None and known is not None:
            return self.training.leaf(self, known, clears)
        raise gradient_outside("" if known is None or known.value.node.op is not INPUT else known.value.name)

    def backward(
        self, tensors: Any, gradients: Any, retain_graph: bool | None, create_graph: bool, inputs: Any
    ) -> None:
        """Runs the backward pass by appending its operations."""
        engine.backward(tensors, gradients, retain_graph, create_graph, inputs)

    def run_hook(self, hook: Callable[[Tensor], Any], gradient: Tensor) -> Any:
        """What a hook makes of a gradient, at each call where the graph calls Python."""
        if self.host is None:
            return hook(gradient)
        return run_gradient_hook(self, "hook of a tensor", hook, gradient)

    def watch_tensor(self, tensor: Tensor) -> Any:
        """The table of hooks that see the gradient of a traced tensor at each call; None where the graph calls no
        Python. Raises TraceError in a sub-graph that calls none, whose gradient is made without the hooks."""
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
        """Applies a custom function as a ``call`` of two sub-graphs, its forward and its backward; as a host call where
        it is opaque or asks for values."""
        # Loaded here, for it makes tracers.
        return import_module("graphc.tracing.custom").apply(self, name, context, operands, (forward, backward), again)


def _laid_out(layout: np.ndarray, dtype: DType) -> np.ndarray:
    """An array that lies in memory as ``layout`` does, element for element, of another type."""
    steps = [step // layout.itemsize for step in layout.strides]
    reach = 1 + sum(max(n - 1, 0) * step for n, step in zip(layout.shape, steps, strict=True))
    made = np.empty(reach, dtype.numpy)
    return as_strided(made, layout.shape, [step * made.itemsize for step in steps])


def _expected(attrs: Mapping[str, Any], exact: bool = False) -> dict[str, Any]:
    """Attributes with the sizes that are expected in the place of those known at run time."""
    return {name: _expected_sizes(value, exact) for name, value in attrs.items()}


def _expected_sizes(value: Any, exact: bool) -> Any:
    if type(value) is tuple:
        return tuple([_expected_sizes(part, exact) for part in value])
    return expected(value, exact) if is_size(value) else value


def _without_history(tensor: Tensor) -> Tensor:
    """A result of an eager operation as a leaf that shares its memory; other tensors as they are."""
    if tensor._node is None or isinstance(tensor._data, Value):
        return tensor
    return Tensor._make_subclass(Tensor, tensor)


def named_tensors(root: Any) -> list[tuple[Tensor, str, str]]:
    """Parameters and buffers of a module with class and path."""
    found = [(p, "param", path) for path, p in root.named_parameters()]
    return [*found, *((b, "state", path) for path, b in root.named_buffers())]


def value_needed(value: Value, purpose: str) -> ValueNeededError:
    """The error of code that asks for the values of a traced tensor: the user's line, the value, and the remedy."""
    location = capture(module_path.current_path())
    place = f"{location.file}:{location.line}: " if location.file else ""
    made = value.node.op.name if value.node.op is not INPUT else "an argument of the traced function"
    return ValueNeededError(
        f"{place}{purpose} needs the values of a traced tensor, which has none: {value.type}",
        where=f"%{value.name}: {value.type}, made by {made}",
        origin=location.describe(),
        remedy=advice(purpose),
    )
