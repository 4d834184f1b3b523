"""Host calls: Python functions that compiled code calls, how a trace records them, and how each call runs them."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from typing import Any

import numpy as np

from graphc.autograd import engine
from graphc.base import module_path
from graphc.base.dtypes import float32
from graphc.base.errors import ArgumentError, DTypeError, GradientError, ShapeError, TraceError
from graphc.base.host_function import HostFunction, Spec
from graphc.base.location import capture
from graphc.base.sizes.size import is_size
from graphc.guards.attributes import not_recording, recorder
from graphc.ir.graph.graph import Graph, Value
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.dispatch import GraphDispatcher
from graphc.ops.effects.check import check_true
from graphc.ops.effects.host import FAILED, TOKEN, host_call, text_of
from graphc.ops.movement.shape import filled
from graphc.ops.pointwise import elementwise as ew
from graphc.tape.grad_mode import enable_grad, is_grad_enabled, no_grad
from graphc.tape.hooks import call_hook
from graphc.tape.node import AccumulateGrad, Node, nodes_behind
from graphc.tensors.structure import flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import edge_of, refresh

Run = Callable[..., Sequence[Any]]
"""A function of tensors that returns tensors, in eager mode."""
_MISSING = object()
UNKNOWN = object()
"""Marker for results whose shapes and types nobody has declared."""


class HostCalls:
    """The Python functions a graph calls, by index, and the token of the last call."""

    def __init__(self) -> None:
        self.functions: list[HostFunction] = []
        self.token: Tensor | None = None
        self.watched: dict[int, tuple[Tensor, OrderedDict[int, Callable[..., Any]]]] = {}
        """Traced tensors with hooks, by identity."""
        self.pending: list[tuple[Callable[..., Any], Tensor]] = []
        """Callbacks and the statistics rows that each of them receives when the call ends."""
        self.slots: list[tuple[Tensor, list[Callable[..., Any]]]] = []
        """Unused slots for rows of gradient statistics, each with the callbacks of its host call."""

    def start(self, tracer: Any) -> None:
        """Create the first token."""
        if self.token is None:
            self.token = tracer.scalar(0.0, float32)

    def add(
        self,
        name: str,
        function: Callable[..., Any],
        operands: Sequence[Spec],
        results: Sequence[Spec],
        takes_only: bool = False,
        lends: bool = False,
    ) -> int:
        """Append a function and return its index."""
        self.functions.append(HostFunction(name, function, tuple(operands), tuple(results), takes_only, lends))
        return len(self.functions) - 1


def of(tracer: Any, name: str) -> HostCalls:
    """Return the host calls of a trace; raise TraceError if the graph cannot call Python."""
    if tracer.host is not None:
        return tracer.host
    raise no_python(tracer, name)


def no_python(tracer: Any, name: str, why: str | None = None) -> TraceError:
    """Return the error for a function that runs in Python where the graph cannot call it."""
    inside = getattr(tracer, "parent", None) is not None
    where = "a branch, a step of a loop or of vmap" if inside else "a graph by itself, as in a model file,"
    return TraceError(
        f"{name} runs in Python, which {where} cannot call",
        where=why,
        origin=capture(module_path.current_path()).describe(),
        remedy="call it outside of cond, scan, loops and custom functions"
        if inside
        else "use operations of graphc instead",
    )


def call_python(
    tracer: Any,
    name: str,
    run: Run,
    tensors: Sequence[Tensor],
    results: Sequence[TensorType],
    shown: Sequence[Tensor] = (),
) -> list[Tensor]:
    """Call ``run(*tensors)`` at each call of the compiled code, and return its results.

    The backward pass differentiates the operations and custom functions of graphc that ``run`` applies. ``run`` gets
    read-only copies of the tensors and returns tensors of the types ``results``. It gets the tensors ``shown`` too,
    which receive no gradient.
    """
    host = of(tracer, name)
    site = _Site(name, run, tracer, tensors, results, shown)
    tensors = [*tensors, *shown]
    host.start(tracer)
    if site.differentiated:
        # Imported here: its module imports graphs and interpreters, which few traces need.
        call = import_module("graphc.ops.flow.control").call
        attrs = {**site.graphs(host), "results": 1 + len(results), "ordered": True}
        outputs = tracer.apply(call.op, (host.token, *tensors), attrs)
    else:
        with no_grad():
            attrs = site.attrs(host, site.forward, site.operands, results)
            outputs = tracer.apply(host_call.op, (host.token, *tensors), attrs)
            outputs = outputs if isinstance(outputs, tuple) else (outputs,)
            check_true(ew.eq(outputs[0], 0.0), message=FAILED)
    host.token = outputs[0]
    return list(outputs[1:])


def lend_python(
    tracer: Any,
    name: str,
    function: Callable[..., None],
    tensors: Sequence[Tensor],
    results: Sequence[TensorType] = (),
    checked: bool = False,
) -> list[Tensor]:
    """Call ``function(state, *arrays)`` on the memory of the tensors and of the results (see HostFunction.lends).

    Return the token after the call and the results, which are valid once this function or a later one has filled them.
    With ``checked``, the program stops here if this call or an earlier one has failed.
    """
    host = of(tracer, name)
    host.start(tracer)
    specs = [_spec(TensorType(t.dtype, tuple(t.shape))) for t in tensors]
    number = host.add(name, function, specs, [_spec(t) for t in results], lends=True)
    attrs = {"number": number, "name": name, "results": text_of(results), "lends": True}
    outputs = tracer.apply(host_call.op, (host.token, *tensors), attrs)
    outputs = list(outputs) if isinstance(outputs, tuple) else [outputs]
    host.token = outputs[0]
    if checked:
        check_true(ew.eq(outputs[0], 0.0), message=FAILED)
    return outputs


def watch_gradients(
    tracer: Any, name: str, watch: Callable[[tuple[Any, ...]], Sequence[Any]], tensors: Sequence[Tensor]
) -> list[Tensor]:
    """Pass the gradients of tensors through ``watch(gradients)`` in each backward pass; return the tensors. ``watch``
    gets read-only tensors and returns as many of the same shapes and types."""
    host = of(tracer, name)
    local = [refresh(tracer.local(t)) for t in tensors]
    chosen = [t for t in local if t._requires_grad and t.dtype.is_differentiable]
    if not chosen or not is_grad_enabled():
        return list(tensors)
    types = [TensorType(t.dtype, tuple(t.shape)) for t in chosen]
    host.start(tracer)
    site = _Site(name, lambda *gradients: watch(gradients), tracer, (), types)
    forward, backward = Graph(f"{name}.forward"), Graph(f"{name}.backward")
    forward.set_outputs([forward.add_input(t, f"x{i}") for i, t in enumerate((TOKEN, *types))])
    gradients = [backward.add_input(t, f"g{i}") for i, t in enumerate((TOKEN, *types))]
    backward.set_outputs(_emit(backward, gradients, site.attrs(host, site.forward, types, types)))
    call = import_module("graphc.ops.flow.control").call
    attrs = {"forward": forward, "backward": backward, "results": 1 + len(types), "ordered": True}
    host.token, *outputs = tracer.apply(call.op, (host.token, *chosen), attrs)
    remaining = iter(outputs)
    return [next(remaining) if any(t is c for c in chosen) else t for t in local]


def pass_gradients(watched: Tensor) -> None:
    """Let backward passes of this trace pass on the gradients of ``watch_gradients`` without a call of Python."""
    node: Any = watched._node
    backward = Graph(node.attrs["backward"].name)
    backward.set_outputs([backward.add_input(v.type, v.name) for v in node.attrs["backward"].inputs])
    node.attrs = {**node.attrs, "backward": backward}


def run_gradient_hook(tracer: Any, name: str, hook: Callable[[Tensor], Any], gradient: Tensor) -> Tensor:
    """Run a hook on a gradient, at each backward pass of compiled code or, if it is a traced hook, now; return its
    result. Only a traced hook is differentiable: raise TraceError if another one would be differentiated."""
    if getattr(hook, "is_traced_hook", False):
        replacement = call_hook(hook, gradient)
        return gradient if replacement is None else replacement
    if is_grad_enabled() and gradient._requires_grad:
        raise TraceError(
            f"{name} runs in Python at each call, and a gradient that it sees is differentiated again (create_graph)",
            origin=capture(module_path.current_path()).describe(),
            remedy="wrap a hook that only computes in graphc.hooks.traced(hook), or remove the hook",
        )

    def run(incoming: Tensor) -> Sequence[Tensor]:
        replacement = call_hook(hook, incoming)
        return [incoming if replacement is None else replacement]

    with no_grad():
        return call_python(tracer, name, run, [gradient], [TensorType(gradient.dtype, tuple(gradient.shape))])[0]


def watch_tensor(tracer: Any, tensor: Tensor) -> OrderedDict[int, Callable[..., Any]]:
    """Return the table of hooks that see, and may replace, the gradient of a traced tensor in each backward pass. Raise
    TraceError if the tensor was already used: its gradient would also come from those uses."""
    entry = of(tracer, "hook of a tensor").watched.get(id(tensor))
    if entry is not None:
        return entry[1]
    if tracer.graph.is_used(tensor._data) or tensor._view is not None:
        raise TraceError(
            "register_hook: in compiled code the tensor was already used, or is a view",
            origin=capture(module_path.current_path()).describe(),
            remedy="register the hook right after the tensor is created, before its first use",
        )

    hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()

    def watch(grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in list(hooks.values()):
            replacement = call_hook(hook, *grads)
            grads = grads if replacement is None else (replacement,)
        return grads

    (watched,) = watch_gradients(tracer, "hook of a tensor", watch, [tensor])
    tensor._data, tensor._node, tensor._index = watched._data, watched._node, watched._index
    tracer.host.watched[id(tensor)] = (tensor, hooks)
    return hooks


class _Shown(Node):
    """Autograd node of the producer of a value a Python function was shown, in graphs built from that value."""

    arrived: Tensor | None = None
    """Gradient that arrived from outside of the function, for the backward pass of the function's call."""

    def __init__(self, name: str):
        super().__init__()
        self.title = name

    def run(self, grads: list[Any]) -> Sequence[Any]:
        """Keep the gradient for the backward pass of the call, and trigger that pass through the edge."""
        if not self.edges:
            raise GradientError(
                f"the gradient of a value that a {self.title} kept does not reach the compiled code",
                remedy="keep tensor.detach(), or keep the output of the hook's module instead of an input and call the "
                "compiled code as part of the autograd graph",
            )
        self.arrived = grads[0] if self.arrived is None else ew.add(self.arrived, grads[0])
        return [Tensor._wrap(np.zeros((), np.float32))]


def lead_to(state: dict[Any, Any], node: Node) -> None:
    """Route gradients of values that Python functions have kept to the node of their call, as its last output.

    ``state`` holds the results of the functions' forward pass.
    """
    shown = [leaf._node for site, saved in state.items() if isinstance(site, _Site) for leaf in saved[0]]
    for maker in shown:
        maker.edges = ((node, node.count),)
    node.count += bool(shown)


class _Site:
    """One call site of a Python function in compiled code."""

    def __init__(
        self,
        name: str,
        run: Run,
        tracer: Any,
        tensors: Sequence[Tensor],
        results: Sequence[TensorType],
        shown: Sequence[Tensor] = (),
    ):
        self.name, self.run = name, run
        local = [refresh(tracer.local(t)) for t in (*tensors, *shown)]
        self.operands = [TensorType(t.dtype, tuple(t.shape)) for t in local]
        self.results = tuple(results)
        if any(map(is_size, [s for t in (*self.operands, *self.results) for s in t.shape])):
            raise TraceError(
                f"{name} runs in Python and has arguments or results of named sizes",
                origin=capture(module_path.current_path()).describe(),
                remedy="compile without dims=, so that each size gets a program",
            )
        grad = is_grad_enabled()
        required = [i for i, t in enumerate(local) if grad and t._requires_grad and t.dtype.is_differentiable]
        self.differentiated = [i for i in required if i < len(tensors)]
        """Indices of the operands that get gradients."""
        self.shown = [i for i in required if i >= len(tensors)] if self.differentiated else []
        """Indices of shown tensors that get no gradient here, but would in eager mode."""
        self.differentiable_results = [i for i, t in enumerate(self.results) if t.dtype.is_differentiable]
        """Indices of the results that get a gradient."""

    def attrs(
        self,
        host: HostCalls,
        function: Callable[..., Any],
        operands: Sequence[TensorType],
        results: Sequence[TensorType],
    ) -> dict[str, Any]:
        """Register a function and return the attributes of its call."""
        number = host.add(self.name, function, [_spec(t) for t in operands], [_spec(t) for t in results])
        return {"number": number, "name": self.name, "results": text_of(results)}

    def graphs(self, host: HostCalls) -> dict[str, Graph]:
        """Return the forward and the backward graph."""
        forward = Graph(f"{self.name}.forward")
        inputs = [forward.add_input(t, f"x{i}") for i, t in enumerate((TOKEN, *self.operands))]
        forward.set_outputs(_emit(forward, inputs, self.attrs(host, self.forward, self.operands, self.results)))
        backward = Graph(f"{self.name}.backward")
        gradients = [backward.add_input(t, f"g{i}") for i, t in enumerate((TOKEN, *self.results))]
        result_types = [self.results[i] for i in self.differentiable_results]
        operand_types = [self.operands[i] for i in self.differentiated]
        attrs = self.attrs(host, self.backward, result_types, operand_types)
        outputs = _emit(backward, [gradients[0], *(gradients[1 + i] for i in self.differentiable_results)], attrs)
        gradients_by_operand = dict(zip(self.differentiated, outputs[1:], strict=True))
        with dispatch.use(GraphDispatcher(backward)):
            filled_gradients = [
                gradients_by_operand[i] if i in gradients_by_operand else filled(0, t.dtype, t.shape)
                for i, t in enumerate(self.operands)
            ]
        backward.set_outputs([outputs[0], *filled_gradients])
        return {"forward": forward, "backward": backward}

    # ---- what each call runs

    def forward(self, state: dict[Any, Any], *arrays: np.ndarray) -> list[np.ndarray]:
        """Run the function and save its leaves and results for the backward pass."""
        tensors = [Tensor._wrap(a) for a in arrays]
        for i in (*self.differentiated, *self.shown):
            tensors[i]._node, tensors[i]._index, tensors[i]._requires_grad = _Shown(self.name), 0, True
        with outside_of_traces(), enable_grad() if self.differentiated else no_grad():
            results = [*self.run(*tensors)]
            self._check(results)
            if self.differentiated:
                self._check_leaves(tensors, results)
                state[self] = ([tensors[i] for i in self.differentiated], results)
        return [t._data for t in results]

    def backward(self, state: dict[Any, Any], *arrays: np.ndarray) -> list[np.ndarray]:
        """Run the backward pass of the saved forward pass."""
        leaves, results = state[self]
        gradients = dict(zip(self.differentiable_results, arrays, strict=True))
        roots = [(results[i], Tensor._wrap(a)) for i, a in gradients.items() if refresh(results[i])._requires_grad]
        with outside_of_traces():
            leaf_gradients = engine.grad(
                [r for r, _ in roots], leaves, [g for _, g in roots], retain_graph=True, materialize_grads=True
            )
            arrived = [leaf._node.arrived for leaf in leaves]
            leaf_gradients = [g if a is None else ew.add(g, a) for g, a in zip(leaf_gradients, arrived, strict=True)]
        for leaf in leaves:
            leaf._node.arrived = None
        return [t._data for t in leaf_gradients]

    def _check(self, returned: Sequence[Any]) -> None:
        kinds = [(t.dtype, tuple(t.shape)) if isinstance(t, Tensor) else None for t in returned]
        expected = [(t.dtype, t.shape) for t in self.results]
        if kinds == expected:
            return
        shown = [f"{k[0].name}{list(k[1])}" if k else "no tensor" for k in kinds]
        expected_types = [f"{t.dtype.name}{list(t.shape)}" for t in self.results]
        kind = DTypeError if [k and k[1] for k in kinds] == [t.shape for t in self.results] else ShapeError
        raise kind(
            f"{self.name} returned {', '.join(shown) or 'nothing'}, the compiled code takes "
            f"{', '.join(expected_types)}",
            remedy="return results of the shapes and types that the traced call had",
        )

    def _check_leaves(self, tensors: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Raise GradientError if a gradient would be lost."""
        own = {tensors[i]._node for i in self.differentiated}
        behind = nodes_behind([edge_of(t)[0] for t in results if refresh(t)._requires_grad], set())
        if any(isinstance(node, (AccumulateGrad, _Shown)) and node not in own for node in behind):
            what = "what replaces the output depends on the inputs" if self.shown else "it uses other tensors"
            raise GradientError(
                f"{self.name}: {what}, to which compiled code would not carry the gradient",
                remedy="use tensor.detach(), pass the tensors as arguments, or call a function that is not opaque; "
                "wrap a hook that computes the same at each call in graphc.hooks.traced(hook)",
            )


def _emit(graph: Graph, operands: Sequence[Value], attrs: dict[str, Any]) -> list[Value]:
    with dispatch.use(GraphDispatcher(graph)):
        outputs = host_call(*operands, **attrs)
        outputs = list(outputs) if isinstance(outputs, tuple) else [outputs]
        check_true(ew.eq(outputs[0], 0.0), message=FAILED)
    return outputs


def _spec(kind: TensorType) -> Spec:
    return kind.shape, kind.dtype.numpy


def outside_of_traces() -> AbstractContextManager[None]:
    """Enter eager mode, also if a compiled function is called while another one is traced."""
    # Shortcut: each hook of each call comes here, nearly always outside of any trace.
    outside = dispatch.is_default() and module_path.scope() is None and recorder() is None
    return _NOTHING if outside else _leaving_traces()


_NOTHING = nullcontext()


@contextmanager
def _leaving_traces() -> Iterator[None]:
    with dispatch.use(dispatch.default()), module_path.outside(), not_recording():
        yield


def opaque_call(
    tracer: Any, name: str, function: Callable[..., Any], operands: Sequence[Any], like: Any = UNKNOWN
) -> Any:
    """Call a Python function of tensors and other values, and return its results as it nests them. ``like`` holds
    tensors of the results' shapes and types; without it the function runs once on zeros to find them."""
    leaves, structure = flatten(tuple(operands))
    if like is UNKNOWN:
        with outside_of_traces(), no_grad():
            try:
                zeros = [Tensor._wrap(np.zeros(tuple(t.shape), t.dtype.numpy)) for t in leaves]
                like = _as_tensors(function(*unflatten(structure, zeros)))
            # NOTE: the function was not written for zeros, so it may raise anything.
            except Exception as error:
                raise TraceError(
                    f"{name} was run on zeros, to see what it returns, and raised {type(error).__name__}: {error}",
                    origin=capture(module_path.current_path()).describe(),
                    remedy="declare what it returns: graphc.opaque(function, results=...)",
                ) from error
    shapes, nested = flatten(like)
    types = [TensorType(t.dtype, tuple(t.shape)) for t in shapes]

    def run(*tensors: Tensor) -> Sequence[Tensor]:
        results, form = flatten(_as_tensors(function(*unflatten(structure, tensors))))
        if form != nested:
            raise ShapeError(f"{name} returned another nesting than before", remedy="return the same nesting")
        return results

    return unflatten(nested, call_python(tracer, name, run, leaves, types))


def _as_tensors(value: Any) -> Any:
    """Convert arrays and numbers in a result to tensors."""
    if isinstance(value, (np.ndarray, np.generic, bool, int, float)):
        return Tensor._wrap(np.array(value, order="C"))
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(map(_as_tensors, value))
    return {k: _as_tensors(v) for k, v in value.items()} if type(value) is dict else value


def opaque(function: Callable[..., Any] | None = None, *, results: Callable[..., Any] | None = None) -> Any:
    """Make a function of tensors that compiled code calls in Python, uncompiled, at each call; also a decorator.

    The function may do anything: NumPy, files, other random generators, conditions on values. It gets read-only copies
    of tensors, and other arguments as they were in the trace. It returns tensors, arrays or numbers, nested in tuples,
    lists and dictionaries, always of the same shapes and types. Operations and custom Functions of graphc in it are
    differentiable; NumPy results are constants.

    ``results`` is a function of the same arguments that returns tensors of the results' shapes and types, in operations
    of graphc; its values are never computed. Without it the function runs once on zeros during the trace.

    In eager mode it is a plain call of the function. Graphs that contain it cannot be exported. Raises TraceError
    inside of ``scan`` and if the run on zeros fails; ShapeError and DTypeError if a call returns other shapes or types.
    """
    for name, value in (("function", function), ("results", results)):
        if value is not None and not callable(value):
            raise ArgumentError(
                f"opaque: {name} must be a function, got {type(value).__name__}",
                remedy="call opaque(function, results=lambda x: x)",
            )
    if function is None:
        return functools.partial(opaque, results=results)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        tracer = dispatch.current()
        if getattr(tracer, "host", _MISSING) is _MISSING:
            return _as_tensors(function(*args, **kwargs))
        applied = functools.partial(_applied, function)
        like: Any = UNKNOWN
        if results is not None:
            with no_grad():
                like = results(*args, **kwargs)
        return opaque_call(tracer, getattr(function, "__name__", "a function"), applied, (args, kwargs), like)

    return call


def _applied(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    return function(*args, **kwargs)


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Make a function that compiled code calls in Python, uncompiled, like ``opaque``. Raise ArgumentError without
    ``recursive``: the functions it calls run in Python too."""
    if not recursive:
        raise ArgumentError(
            "disable: the functions that it calls are not compiled either", remedy="pass recursive=True"
        )
    return opaque(fn)
