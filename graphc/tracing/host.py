"""Python functions that compiled code calls: what a trace notes of them, and what runs at each call."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from typing import Any

import numpy as np

from graphc.base import module_path
from graphc.base.dtypes import float32
from graphc.base.errors import ArgumentError, DTypeError, GradientError, ShapeError, TraceError
from graphc.base.host_function import HostFunction, Spec
from graphc.base.location import capture
from graphc.base.sizes.size import is_size
from graphc.eager import engine
from graphc.guards.attributes import not_recording, recorder
from graphc.ir.graph.graph import Graph, Value
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops import elementwise as ew
from graphc.ops.check import check_true
from graphc.ops.dispatch import GraphDispatcher
from graphc.ops.host import FAILED, TOKEN, host_call, text_of
from graphc.ops.shape import filled
from graphc.tape.grad_mode import enable_grad, is_grad_enabled, no_grad
from graphc.tape.hooks import call_hook
from graphc.tape.node import AccumulateGrad, Node, nodes_behind
from graphc.tensors.structure import flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import edge_of, refresh

Run = Callable[..., Sequence[Any]]
"""Takes tensors and gives tensors, in eager mode."""
_MISSING = object()
UNKNOWN = object()
"""In the place of results of which nobody says what they are like."""


class HostCalls:
    """The Python functions that a graph calls, by number, and the token of the last call."""

    def __init__(self, functions: Sequence[HostFunction] = ()) -> None:
        self.functions = list(functions)
        self.token: Tensor | None = None
        self.watched: dict[int, tuple[Tensor, OrderedDict[int, Callable[..., Any]]]] = {}
        """Traced tensors with hooks, by identity."""
        self.pending: list[tuple[Callable[..., Any], Tensor]] = []
        """Rows of numbers that somebody gets when a call ends, and who."""
        self.slots: list[tuple[Tensor, list[Callable[..., Any]]]] = []
        """Places for rows of gradients that nobody has taken yet, and who gets those of the same call."""

    def start(self, tracer: Any) -> None:
        """Makes the first token."""
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
        """The number of one more function."""
        self.functions.append(HostFunction(name, function, tuple(operands), tuple(results), takes_only, lends))
        return len(self.functions) - 1


def of(tracer: Any, name: str) -> HostCalls:
    """The host calls of a trace; raises TraceError where the graph cannot call Python."""
    if tracer.host is not None:
        return tracer.host
    raise no_python(tracer, name)


def no_python(tracer: Any, name: str, why: str | None = None) -> TraceError:
    """What is raised where a function runs in Python, and the graph cannot call it."""
    inside = getattr(tracer, "parent", None) is not None
    where = "a branch, a step of a loop or of vmap" if inside else "a graph by itself, as in a model file,"
    return TraceError(
        f"{name} runs in Python, which {where} cannot call",
        where=why,
        origin=capture(module_path.current_path()).describe(),
        remedy="call it outside of cond, scan, loops and custom functions"
        if inside
        else "operations of graphc in its place",
    )


def call_python(
    tracer: Any,
    name: str,
    run: Run,
    tensors: Sequence[Tensor],
    results: Sequence[TensorType],
    shown: Sequence[Tensor] = (),
) -> list[Tensor]:
    """What ``run(*tensors)`` gives at each call of the compiled code, with its gradient: that of the operations of
    graphc, and custom functions, that it applies. ``run`` gets read-only tensors with memory of their own and returns
    tensors of the types ``results``. It gets the tensors ``shown``, too, to which no gradient goes."""
    host = of(tracer, name)
    site = _Site(name, run, tracer, tensors, results, shown)
    tensors = [*tensors, *shown]
    host.start(tracer)
    if site.wanted:
        # Loaded here, since its samples are graphs, and graphs load networkx.
        call = import_module("graphc.ops.control").call
        attrs = {**site.graphs(host), "results": 1 + len(results), "ordered": True}
        found = tracer.apply(call.op, (host.token, *tensors), attrs)
    else:
        with no_grad():
            attrs = site.attrs(host, site.forward, site.given, results)
            found = tracer.apply(host_call.op, (host.token, *tensors), attrs)
            found = found if isinstance(found, tuple) else (found,)
            check_true(ew.eq(found[0], 0.0), message=FAILED)
    host.token = found[0]
    return list(found[1:])


def lend_python(
    tracer: Any,
    name: str,
    function: Callable[..., None],
    tensors: Sequence[Tensor],
    results: Sequence[TensorType] = (),
    checked: bool = False,
) -> list[Tensor]:
    """Calls ``function(state, *arrays)`` on the memory of the tensors and of the results, see HostFunction.lends; gives
    the token behind the call, and the results, which hold what they shall once the function, or one that is called
    later, has filled them. ``checked``: the program ends there where this call, or one before, has failed."""
    host = of(tracer, name)
    host.start(tracer)
    specs = [_spec(TensorType(t.dtype, tuple(t.shape))) for t in tensors]
    number = host.add(name, function, specs, [_spec(t) for t in results], lends=True)
    attrs = {"number": number, "name": name, "results": text_of(results), "lends": True}
    found = tracer.apply(host_call.op, (host.token, *tensors), attrs)
    found = list(found) if isinstance(found, tuple) else [found]
    host.token = found[0]
    if checked:
        check_true(ew.eq(found[0], 0.0), message=FAILED)
    return found


def watch_gradients(
    tracer: Any, name: str, watch: Callable[[tuple[Any, ...]], Sequence[Any]], tensors: Sequence[Tensor]
) -> list[Tensor]:
    """The tensors themselves, whose gradients go through ``watch(gradients)`` in each backward pass: it gets read-only
    tensors and returns as many of the same shapes and types."""
    host = of(tracer, name)
    local = [refresh(tracer.local(t)) for t in tensors]
    chosen = [t for t in local if t._requires_grad and t.dtype.is_differentiable]
    if not chosen or not is_grad_enabled():
        return list(tensors)
    types = [TensorType(t.dtype, tuple(t.shape)) for t in chosen]
    host.start(tracer)
    site = _Site(name, lambda *given: watch(given), tracer, (), types)
    forward, backward = Graph(f"{name}.forward"), Graph(f"{name}.backward")
    forward.set_outputs([forward.add_input(t, f"x{i}") for i, t in enumerate((TOKEN, *types))])
    gradients = [backward.add_input(t, f"g{i}") for i, t in enumerate((TOKEN, *types))]
    backward.set_outputs(_emit(backward, gradients, site.attrs(host, site.forward, types, types)))
    call = import_module("graphc.ops.control").call
    attrs = {"forward": forward, "backward": backward, "results": 1 + len(types), "ordered": True}
    host.token, *found = tracer.apply(call.op, (host.token, *chosen), attrs)
    made = iter(found)
    return [next(made) if any(t is c for c in chosen) else t for t in local]


def run_gradient_hook(tracer: Any, name: str, hook: Callable[[Tensor], Any], gradient: Tensor) -> Tensor:
    """The gradient after a hook that each call of compiled code runs on it, in the backward pass; one that is traced
    runs now, and has derivatives. Raises TraceError where the other kind should have one."""
    if getattr(hook, "is_traced_hook", False):
        made = call_hook(hook, gradient)
        return gradient if made is None else made
    if is_grad_enabled() and gradient._requires_grad:
        raise TraceError(
            f"{name} runs in Python at each call, and a gradient that it sees is differentiated again (create_graph)",
            origin=capture(module_path.current_path()).describe(),
            remedy="graphc.hooks.traced(hook) for a hook that only computes; or remove the hook",
        )

    def run(found: Tensor) -> Sequence[Tensor]:
        given = call_hook(hook, found)
        return [found if given is None else given]

    with no_grad():
        return call_python(tracer, name, run, [gradient], [TensorType(gradient.dtype, tuple(gradient.shape))])[0]


def watch_tensor(tracer: Any, tensor: Tensor) -> OrderedDict[int, Callable[..., Any]]:
    """The hooks that see, and may replace, the gradient of a traced tensor in each backward pass. Raises TraceError for
    a tensor that was used before, whose gradient would come from there as well."""
    known = of(tracer, "hook of a tensor").watched.get(id(tensor))
    if known is not None:
        return known[1]
    if tracer.graph.is_used(tensor._data) or tensor._view is not None:
        raise TraceError(
            "a hook is given to a tensor that was used before, or is a view, in code that is compiled",
            origin=capture(module_path.current_path()).describe(),
            remedy="register the hook where the tensor is made, before anything else is done with it",
        )

    hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()

    def watch(grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in list(hooks.values()):
            found = call_hook(hook, *grads)
            grads = grads if found is None else (found,)
        return grads

    (found,) = watch_gradients(tracer, "hook of a tensor", watch, [tensor])
    tensor._data, tensor._node, tensor._index = found._data, found._node, found._index
    tracer.host.watched[id(tensor)] = (tensor, hooks)
    return hooks


class _Shown(Node):
    """Stands for what made a value that a Python function was shown, in the graph of whatever is computed from it."""

    arrived: Tensor | None = None
    """A gradient that came from outside of the function, for the backward pass of the function's call."""

    def __init__(self, name: str):
        super().__init__()
        self.title = name

    def run(self, grads: list[Any]) -> Sequence[Any]:
        """Keeps the gradient until the backward pass of the compiled code comes to the call, and wakes that pass."""
        if not self.edges:
            raise GradientError(
                f"the gradient of a value that a {self.title} kept does not reach the compiled code",
                remedy="tensor.detach() of what is kept; or the output of the hook's module in place of an input, kept "
                "where compiled code is called as part of the autograd graph",
            )
        self.arrived = grads[0] if self.arrived is None else ew.add(self.arrived, grads[0])
        return [Tensor._wrap(np.zeros((), np.float32))]


def lead_to(state: dict[Any, Any], node: Node) -> None:
    """Gradients of values that Python functions have kept in a call go to its node, whose last output stands for them.

    ``state`` is what the functions have left in the forward pass."""
    shown = [leaf._node for site, left in state.items() if isinstance(site, _Site) for leaf in left[0]]
    for maker in shown:
        maker.edges = ((node, node.count),)
    node.count += bool(shown)


class _Site:
    """One place where compiled code calls a function."""

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
        self.given = [TensorType(t.dtype, tuple(t.shape)) for t in local]
        self.results = tuple(results)
        if any(map(is_size, [s for t in (*self.given, *self.results) for s in t.shape])):
            raise TraceError(
                f"{name} runs in Python and has arguments or results of named sizes",
                origin=capture(module_path.current_path()).describe(),
                remedy="compile without dims, so that each size has a program",
            )
        grad = is_grad_enabled()
        required = [i for i, t in enumerate(local) if grad and t._requires_grad and t.dtype.is_differentiable]
        self.wanted = [i for i in required if i < len(tensors)]
        """Which operands get gradients."""
        self.shown = [i for i in required if i >= len(tensors)] if self.wanted else []
        """Which ones would in eager mode, but get none."""
        self.made = [i for i, t in enumerate(self.results) if t.dtype.is_differentiable]
        """Which results get some."""

    def attrs(
        self, host: HostCalls, function: Callable[..., Any], given: Sequence[TensorType], results: Sequence[TensorType]
    ) -> dict[str, Any]:
        """The attributes of a call of one of its functions."""
        number = host.add(self.name, function, [_spec(t) for t in given], [_spec(t) for t in results])
        return {"number": number, "name": self.name, "results": text_of(results)}

    def graphs(self, host: HostCalls) -> dict[str, Graph]:
        """Its forward and its backward."""
        forward = Graph(f"{self.name}.forward")
        inputs = [forward.add_input(t, f"x{i}") for i, t in enumerate((TOKEN, *self.given))]
        forward.set_outputs(_emit(forward, inputs, self.attrs(host, self.forward, self.given, self.results)))
        backward = Graph(f"{self.name}.backward")
        gradients = [backward.add_input(t, f"g{i}") for i, t in enumerate((TOKEN, *self.results))]
        given = [self.results[i] for i in self.made]
        wanted = [self.given[i] for i in self.wanted]
        attrs = self.attrs(host, self.backward, given, wanted)
        found = _emit(backward, [gradients[0], *(gradients[1 + i] for i in self.made)], attrs)
        known = dict(zip(self.wanted, found[1:], strict=True))
        with dispatch.use(GraphDispatcher(backward)):
            made = [known[i] if i in known else filled(0, t.dtype, t.shape) for i, t in enumerate(self.given)]
        backward.set_outputs([found[0], *made])
        return {"forward": forward, "backward": backward}

    # ---- what runs

    def forward(self, state: dict[Any, Any], *arrays: np.ndarray) -> list[np.ndarray]:
        """Runs the function, and keeps what its gradient needs."""
        tensors = [Tensor._wrap(a) for a in arrays]
        for i in (*self.wanted, *self.shown):
            tensors[i]._node, tensors[i]._index, tensors[i]._requires_grad = _Shown(self.name), 0, True
        with outside_of_traces(), enable_grad() if self.wanted else no_grad():
            found = [*self.run(*tensors)]
            self._check(found)
            if self.wanted:
                self._check_leaves(tensors, found)
                state[self] = ([tensors[i] for i in self.wanted], found)
        return [t._data for t in found]

    def backward(self, state: dict[Any, Any], *arrays: np.ndarray) -> list[np.ndarray]:
        """Runs the backward pass of what ran before."""
        leaves, found = state[self]
        gradients = dict(zip(self.made, arrays, strict=True))
        roots = [(found[i], Tensor._wrap(a)) for i, a in gradients.items() if refresh(found[i])._requires_grad]
        with outside_of_traces():
            made = engine.grad(
                [r for r, _ in roots], leaves, [g for _, g in roots], retain_graph=True, materialize_grads=True
            )
            kept = [leaf._node.arrived for leaf in leaves]
            made = [m if k is None else ew.add(m, k) for m, k in zip(made, kept, strict=True)]
        for leaf in leaves:
            leaf._node.arrived = None
        return [t._data for t in made]

    def _check(self, found: Sequence[Any]) -> None:
        kinds = [(t.dtype, tuple(t.shape)) if isinstance(t, Tensor) else None for t in found]
        expected = [(t.dtype, t.shape) for t in self.results]
        if kinds == expected:
            return
        shown = [f"{k[0].name}{list(k[1])}" if k else "no tensor" for k in kinds]
        wanted = [f"{t.dtype.name}{list(t.shape)}" for t in self.results]
        kind = DTypeError if [k and k[1] for k in kinds] == [t.shape for t in self.results] else ShapeError
        raise kind(
            f"{self.name} returned {', '.join(shown) or 'nothing'}, the compiled code takes {', '.join(wanted)}",
            remedy="results of the shapes and types of the call that was traced",
        )

    def _check_leaves(self, tensors: Sequence[Tensor], found: Sequence[Tensor]) -> None:
        """Raises GradientError where a gradient would be lost."""
        known = {tensors[i]._node for i in self.wanted}
        behind = nodes_behind([edge_of(t)[0] for t in found if refresh(t)._requires_grad], set())
        if any(isinstance(node, (AccumulateGrad, _Shown)) and node not in known for node in behind):
            what = "what replaces the output depends on the inputs" if self.shown else "it uses other tensors"
            raise GradientError(
                f"{self.name}: {what}, to which compiled code would not carry the gradient",
                remedy="tensor.detach(), tensors that are arguments, or a function that is not opaque; "
                "graphc.hooks.traced(hook) for a hook that computes the same at each call",
            )


def _emit(graph: Graph, operands: Sequence[Value], attrs: dict[str, Any]) -> list[Value]:
    with dispatch.use(GraphDispatcher(graph)):
        found = host_call(*operands, **attrs)
        found = list(found) if isinstance(found, tuple) else [found]
        check_true(ew.eq(found[0], 0.0), message=FAILED)
    return found


def _spec(kind: TensorType) -> Spec:
    return kind.shape, kind.dtype.numpy


def outside_of_traces() -> AbstractContextManager[None]:
    """Eager mode, also where a compiled function is called while another one is traced."""
    # Nearly always nothing is traced: each hook of each call comes here.
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
    """The results of a Python function of tensors and other values, nested as it returns them. ``like`` holds tensors
    of their shapes and types; without it the function is run once on zeros to see what it returns."""
    leaves, structure = flatten(tuple(operands))
    if like is UNKNOWN:
        with outside_of_traces(), no_grad():
            try:
                zeros = [Tensor._wrap(np.zeros(tuple(t.shape), t.dtype.numpy)) for t in leaves]
                like = _as_tensors(function(*unflatten(structure, zeros)))
            # NOTE: whatever Python code raises that was written for other values than zeros.
            except Exception as error:
                raise TraceError(
                    f"{name} was run on zeros, to see what it returns, and raised {type(error).__name__}: {error}",
                    origin=capture(module_path.current_path()).describe(),
                    remedy="graphc.opaque(function, results=...), which says what it returns",
                ) from error
    shapes, nested = flatten(like)
    types = [TensorType(t.dtype, tuple(t.shape)) for t in shapes]

    def run(*tensors: Tensor) -> Sequence[Tensor]:
        found, form = flatten(_as_tensors(function(*unflatten(structure, tensors))))
        if form != nested:
            raise ShapeError(f"{name} returned something nested otherwise than before", remedy="the same structure")
        return found

    return unflatten(nested, call_python(tracer, name, run, leaves, types))


def _as_tensors(value: Any) -> Any:
    """A result with tensors for arrays and numbers."""
    if isinstance(value, (np.ndarray, np.generic, bool, int, float)):
        return Tensor._wrap(np.array(value, order="C"))
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(map(_as_tensors, value))
    return {k: _as_tensors(v) for k, v in value.items()} if type(value) is dict else value


def opaque(function: Callable[..., Any] | None = None, *, results: Callable[..., Any] | None = None) -> Any:
    """A function of tensors that compiled code calls as it is, in Python, at each of its calls; also a decorator.

    It may do anything: numpy, files, random numbers of others, conditions on values. It gets tensors (read-only, with
    memory of their own), other arguments as they were at the trace, and returns tensors, arrays or numbers, nested in
    tuples, lists and dictionaries, always of the same shapes and types. Its gradient is that of the operations of
    graphc and of the custom Functions in it; what it computes with numpy is constant.

    ``results`` is a function of the same arguments that returns tensors of the shapes and types of the results, in
    operations of graphc; nothing of it is computed. Without it the function runs once on zeros while it is traced.

    In eager mode it is the function itself. What holds it cannot be exported. Raises TraceError inside of ``scan``, and
    where the run on zeros fails; ShapeError and DTypeError at a call that returns something else than was traced.
    """
    for name, given in (("function", function), ("results", results)):
        if given is not None and not callable(given):
            raise ArgumentError(
                f"opaque: {name} must be a function, got {type(given).__name__}",
                remedy="opaque(function, results=lambda x: x)",
            )
    if function is None:
        return functools.partial(opaque, results=results)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        tracer = dispatch.current()
        if getattr(tracer, "host", _MISSING) is _MISSING:
            return _as_tensors(function(*args, **kwargs))
        given = functools.partial(_applied, function)
        like: Any = UNKNOWN
        if results is not None:
            with no_grad():
                like = results(*args, **kwargs)
        return opaque_call(tracer, getattr(function, "__name__", "a function"), given, (args, kwargs), like)

    return call


def _applied(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    return function(*args, **kwargs)


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """A function that is not compiled: compiled code calls it in Python, as ``opaque`` says. Raises ArgumentError
    without ``recursive``, since what such a function calls is Python too."""
    if not recursive:
        raise ArgumentError("disable: what a function calls is not compiled either", remedy="recursive=True")
    return opaque(fn)
