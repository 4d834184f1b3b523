"""Tracing: runs a module or function on example tensors and returns the graph of its computation."""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import partial
from types import MappingProxyType, MethodType
from typing import Any

import numpy as np

from graphc.base import module_path
from graphc.base.dtypes import int64
from graphc.base.errors import ArgumentError, GraphcError, TraceError
from graphc.base.foreign import no_foreign_module
from graphc.base.host_function import HostFunction
from graphc.base.interruptions import kept_outside
from graphc.base.progress import COMPILE, shown
from graphc.base.records import dataclass
from graphc.base.sizes.assumptions import Assumptions, assuming
from graphc.base.sizes.shape_patterns import ShapePatterns
from graphc.guards.attributes import Effect, Reads, recording
from graphc.guards.number_reads import TraceNumbers
from graphc.ir.graph.cut import Part, cut, stages
from graphc.ir.graph.graph import INPUT, Graph, Value, input_class, input_path
from graphc.ir.graph.interpret import assumed, settle
from graphc.ir.graph.verify import sub_graphs
from graphc.ir.op import Trait
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.tape.node import leaves_behind
from graphc.tape.tangents import USED, levels
from graphc.tensors.placement import on_host
from graphc.tensors.structure import (
    NumberTensor,
    Open,
    Structure,
    flatten,
    holds_objects,
    names,
    shape_of,
    unflatten,
    with_numbers,
)
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import Steps, edge_of, is_counted, refresh
from graphc.tracing.dims import Dims
from graphc.tracing.example_sizes import first_trace
from graphc.tracing.host import HostCalls
from graphc.tracing.identity import repeats
from graphc.tracing.reads import ValueRead, ValueReads, traced_with_reads
from graphc.tracing.taps import deliver
from graphc.tracing.tracer import Tracer, named_tensors
from graphc.tracing.training import Training


@dataclass(frozen=True)
class Argument:
    """A tensor from outside that became an argument of the graph: a parameter, a buffer or random state."""

    value: Value
    tensor: Tensor
    written: bool
    """Whether the graph writes to it."""


@dataclass(frozen=True)
class Constant:
    """A tensor from outside whose content the graph holds, with its version at the trace."""

    tensor: Tensor
    version: int
    data: Any
    """Its array."""

    read_at: str = ""
    """The line that first read it."""

    def holds(self) -> bool:
        """Return whether the tensor still has that content, cannot be changed unseen, and needs no gradient."""
        tensor = self.tensor
        if tensor._requires_grad or tensor._data is not self.data:
            return False
        return is_counted(tensor) and tensor._version == self.version

    def why(self) -> str:
        """Describe the change, and the line that read the tensor."""
        change = "its memory was given out" if not is_counted(self.tensor) else "it was written to"
        change = "it requires gradients now" if self.tensor._requires_grad else change
        location = f" (read at {self.read_at})" if self.read_at else ""
        return f"a tensor whose content is part of the code: {change}{location}"


@dataclass(frozen=True)
class Alias:
    """An output that is a tensor from outside, or a view of one. Inputs that the function wrote to have none."""

    output: int
    source: int | str | Tensor
    """The index of the input, the path of the argument, or the tensor of a constant."""
    steps: Steps
    """The operations from that tensor to the view; none where the output is the tensor itself."""
    is_detached: bool
    """Whether the view was made without gradients."""


@dataclass(frozen=True)
class Traced:
    """A traced graph with the descriptions of its arguments and outputs."""

    graph: Graph
    inputs: tuple[Value, ...]
    """One argument per example tensor, in order, unused ones too; then those for numbers that each call passes."""
    arguments: tuple[Argument, ...]
    """Captured tensors, in order of first use."""
    constants: tuple[Constant, ...]
    structure: Structure
    """Nesting of the outputs."""
    differentiable: tuple[bool, ...] = ()
    """Whether each output has a gradient."""
    attributes: Reads = field(default_factory=Reads, compare=False)
    """Everything else that the trace read from outside."""
    hooked: tuple[str, ...] = ()
    """Lines that registered hooks on traced tensors; a gradient that is computed outside does not run them."""
    reached: Mapping[Value, int] = field(default_factory=dict, compare=False)
    """Inputs and arguments that get a gradient, each with the index of the first output that depends on it."""
    written: tuple[int, ...] = ()
    """Indices of the inputs that the function wrote to; the caller does not see these writes."""
    effects: tuple[Effect, ...] = ()
    """Attributes that each call assigns again."""
    assumptions: Assumptions = field(default_factory=Assumptions, compare=False)
    """Conditions on the sizes of named dimensions."""
    host: tuple[HostFunction, ...] = ()
    """The Python functions that the graph calls, by index."""
    training: Training | None = field(default=None, compare=False)
    """Effects on gradients and optimizers outside. The gradients are further outputs, and no output has a history."""
    reads: tuple[ValueRead, ...] = ()
    """The values that each call reads, in order."""
    aliases: tuple[Alias, ...] = field(default=(), compare=False)
    """Outputs in the memory of a tensor from outside, not copies."""

    def state(self) -> dict[str, np.ndarray]:
        """Return the arrays of params and states by path."""
        return {a.value.node.attrs["path"]: on_host(a.tensor._data) for a in self.arguments}

    def parts(self) -> Iterator[tuple[Part, list[int]]]:
        """Yield the parts of a graph that reads values, each with the indices of what is read after it."""
        ends = [read.end for read in self.reads]
        with assumed(self.graph):
            groups = stages(self.graph, ends)
            parts = cut(self.graph, [[ends[i] for i in group] for group in groups])
        yield from zip(parts, [*groups, []], strict=True)

    def on(self, graph: Graph) -> Traced:
        """Return the trace with another form of its graph, which has the same inputs."""
        now = dict(zip(self.graph.inputs, graph.inputs, strict=True))
        return replace(
            self,
            graph=graph,
            inputs=tuple(now[v] for v in self.inputs),
            arguments=tuple(replace(a, value=now[a.value]) for a in self.arguments),
            reached={now[v]: number for v, number in self.reached.items()},
        )


def runs_as_python() -> bool:
    """Return whether compiled functions may run their Python code: in a trace, and under forward-mode AD."""
    return isinstance(dispatch.current(), Tracer) or (USED[0] and bool(levels.get()))


def is_tracing() -> bool:
    """Return whether a function is being traced."""
    return isinstance(dispatch.current(), Tracer)


def trace(target: Any, *examples: Any, dims: Any = None, **keyword_examples: Any) -> Graph:
    """Trace a module or function on example arguments and return its graph.

    The trace changes nothing outside. ``trace(matrix)`` of one tensor is PyTorch's function: the sum of the diagonal.

    Args:
        target: a Module or a function of tensors.
        examples, keyword_examples: arguments. Tensors and arrays, also nested in tuples, lists and dictionaries, become
            inputs; other arguments are static.
        dims: names of input sizes that vary, as for ``compile``. Where the function branches on a size, the graph is
            valid for sizes that branch like those of the examples: ``graph.assumptions`` lists these conditions with
            their lines, and the dimension gets a smaller range, or becomes a number or a multiple (``4*time_4``).

    Returns:
        The Graph. Parameters, buffers and the random state are its arguments of class param and state; ``graph.bound``
        maps the path of each to its tensor. Other tensors are constants.

    Raises:
        TraceError: Python code asks for the value of a traced tensor.

    Example:
        >>> import graphc as gc
        >>> graph = gc.trace(lambda x: (x * x).sum(), gc.zeros(3))
        >>> print(graph, end="")
        graph @main(%x: f32[3]) -> (f32[]) {
          %mul = mul(%x, %x) : f32[3]  // ...
          %sum = sum(%mul) {axes=[0]} : f32[]  // ...
          return %sum
        }
    """
    if isinstance(target, Tensor) and not examples:
        return target.trace()  # type: ignore[return-value]
    traced = trace_sized(target, examples, keyword_examples, dims)
    traced.graph.assumptions = tuple(traced.assumptions.found.values())
    traced.graph.bound = {input_path(a.value): a.tensor for a in traced.arguments}
    return settle(traced.graph)


def trace_sized(
    target: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    dims: Any,
    calls_python: bool = False,
    by_hints: bool = False,
    reads_sizes: bool = False,
    sizes: Mapping[str, int] = MappingProxyType({}),
) -> Traced:
    """Trace a call in which ``dims`` names dimensions, or is None.

    Questions about sizes are answered for the arguments. With ``by_hints`` the arguments show types and ranks only:
    answers hold for the hints, and where the trace then fails, for other sizes. These sizes become the hints of the
    graph where the declared hints break an assumption. With ``calls_python`` the graph is for inspection only and may
    call Python functions, which it does not contain. With ``reads_sizes`` each call may read values that become sizes.
    ``sizes`` replaces sizes of the arguments, by name of the dimension.
    """
    no_foreign_module("trace", target)
    reading = partial(traced_with_reads, checks_conditions=True, has_sizes=reads_sizes)
    if dims is None:
        kwargs = dict(kwargs)
        return reading(lambda r: trace_function(target, args, kwargs, calls_python=calls_python, value_reads=r))
    declared = Dims(dims, target)
    args, kwargs = declared.with_numbers(tuple(args), dict(kwargs))

    def attempt(patterns: ShapePatterns, assumptions: Assumptions) -> Traced:
        sizes = assumptions.sizes
        options = {"patterns": patterns, "assumptions": assumptions, "calls_python": calls_python}

        def run(reads: ValueReads) -> Traced:
            assumptions.restart(sizes)
            return trace_function(target, args, kwargs, value_reads=reads, **options)

        return reading(run)

    leaves, structure = flatten((args, kwargs))
    declared = declared.hinted({}) if by_hints else declared.expecting(structure, leaves)
    patterns = declared.patterns(structure, leaves)
    hints = {d: d.hint for d in patterns.dimensions.values()}
    if by_hints:
        traced = first_trace(partial(attempt, patterns), hints)
    else:
        actual = patterns.solve([shape_of(leaf) for leaf in leaves])
        if sizes:
            patterns = patterns.hinted({d: sizes.get(d.name, n) for d, n in actual.items()})
            actual = hints = {d: d.hint for d in patterns.dimensions.values()}
        traced = attempt(patterns, Assumptions(actual))
    counts = {r.dimension: r.dimension.hint for r in traced.reads if r.dimension is not None}
    if traced.assumptions.broken(hints | counts) is None:
        return traced
    hinted = patterns.hinted(traced.assumptions.sizes or hints)
    return attempt(hinted, Assumptions({d: d.hint for d in hinted.dimensions.values()}))


@contextmanager
def no_collector() -> Iterator[None]:
    """Disable automatic garbage collection, so that no finalizer runs as part of a trace. Calls that trace and build
    disable it throughout: in between, it would visit all nodes of the graph, which stay alive."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def _world(tracer: Tracer, scope: module_path.Scope | None) -> Iterator[None]:
    """Set up everything that traced code runs in."""
    with no_collector(), kept_outside(), dispatch.use(tracer), module_path.outside(scope):
        yield


@shown(COMPILE, lambda call: "traced")
def trace_function(
    target: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any] | None = None,
    name: str | None = None,
    modules: Sequence[tuple[str, Any]] | None = None,
    guarded: bool = False,
    scope: module_path.Scope | None = None,
    numbers: TraceNumbers | None = None,
    patterns: ShapePatterns | None = None,
    assumptions: Assumptions | None = None,
    calls_python: bool = False,
    value_reads: ValueReads | None = None,
    checks: bool = False,
) -> Traced:
    """Trace ``target(*args, **kwargs)``; see ``trace``.

    ``modules`` are the modules it uses, with prefixes for the names of their tensors; None finds them. ``guarded``
    also records reads of globals and closures, and makes arguments of outside tensors that can be changed unseen.
    ``scope`` holds the modules whose calls enclose the trace; random numbers depend on it. ``numbers`` holds the
    symbolic numbers that each call passes, ``value_reads`` the values that calls read. ``patterns`` are the tensors'
    shapes with named dimensions; ``assumptions`` gets assumptions about these. ``calls_python`` lets the graph call
    Python functions. ``checks`` appends what ``first_nan`` checks. Raises TraceError if the world outside is changed.
    """
    _check_target(target)
    leaves, structure = flatten((tuple(args), dict(kwargs or {})))
    modules = modules_of(target) if modules is None else modules
    submodules = [m for _, root in modules if hasattr(root, "modules") for m in root.modules()]
    tracer = start(graph := Graph(name or graph_name(target)), modules)
    images = _images(graph, leaves, patterns, _input_names(target, structure))
    inside = [images[i] for i in repeats(leaves)] or images
    values = tuple(image._data for image in images)
    tracer.binds_escaped, tracer.arguments = guarded, frozenset(map(id, images))
    record = tracer.numbers = (numbers := numbers or TraceNumbers()).record
    tracer.training = Training(checks) if guarded else None
    tracer.host = HostCalls() if guarded or calls_python else None
    if numbers.arguments:
        structure = with_numbers(structure, iter([Open(number) for number in numbers.arguments]))
    sized, recorded = assuming(assumed := assumptions or Assumptions()), recording(guarded, numbers)
    _read_values(tracer, value_reads, dict(zip(values, leaves, strict=True)), patterns, assumed)
    with _world(tracer, scope), record, sized, recorded as reads:
        inputs, keywords = unflatten(structure, [_passed(image) for image in inside])
        reads.begin(target if guarded else None, submodules)
        try:
            result_leaves, outputs = flatten(_call(target, inputs, keywords))
            if holds_objects(outputs):
                record.pin_all()  # the objects hold numbers of the trace
            results = [refresh(tracer.local(t)) for t in result_leaves]
            deliver(tracer)
        # NOTE: undo the changes of the traced code whatever ended it, Ctrl-C too, then raise it again.
        except BaseException:
            reads.settle()
            raise
    settled(reads, graph.name)
    written = tuple(i for i, image in enumerate(inside) if image._version)
    reached = _reached(tracer, dict(zip(map(id, images), values, strict=True)), results)
    traced = finish(tracer, (*values, *record.inputs.values()), results, outputs)
    facts: dict[str, Any] = {"written": written, "reached": reached, "effects": tuple(reads.effects)}
    aliases = _aliases(traced, tracer, inside, result_leaves)
    return replace(traced, attributes=reads, assumptions=assumed, aliases=aliases, **facts)


def _aliases(traced: Traced, tracer: Tracer, inputs: Sequence[Tensor], results: Sequence[Tensor]) -> tuple[Alias, ...]:
    sources: dict[int, int | str | Tensor] = {id(c.tensor): c.tensor for c in traced.constants}
    sources |= {id(a.tensor): input_path(a.value) for a in traced.arguments}
    sources |= {id(c.image): sources[key] for key, c in tracer.captured.items() if key in sources}
    sources |= {id(image): i for i, image in reversed([*enumerate(inputs)]) if not image._version}
    aliases: list[Alias] = []
    for i, result in enumerate(results):
        view = None if id(result) in sources else result._view
        source = sources.get(id(result if view is None else view.base))
        if source is not None:
            aliases.append(Alias(i, source, () if view is None else view.steps, result._detached))
    return tuple(aliases)


def _read_values(
    tracer: Tracer,
    value_reads: ValueReads | None,
    leaves: Mapping[Value, Tensor],
    patterns: ShapePatterns | None,
    assumptions: Assumptions,
) -> None:
    """Let a trace read values of the call, whose tensors are ``leaves`` by the inputs of the graph."""
    if value_reads is None:
        return
    tracer.reads = value_reads
    shapes = [shape_of(leaf) for leaf in leaves.values()]
    arrays = {value: on_host(leaf._data) for value, leaf in leaves.items()}
    value_reads.begin(arrays, lambda: {} if patterns is None else patterns.solve(shapes), assumptions)


def _check_target(target: Any) -> None:
    if is_tracing():
        raise TraceError("trace is called inside of another trace", remedy="call the function itself")
    if not callable(target):
        raise ArgumentError(f"a module or a function can be traced, not {type(target).__name__}")


def _reached(tracer: Tracer, inputs: Mapping[int, Value], results: Sequence[Tensor]) -> dict[Value, int]:
    """Return the arguments that get a gradient, each with the index of the first result that depends on it. ``inputs``
    maps the identities of the function's own traced inputs to their values."""
    values = {**inputs, **{id(c.image): c.value for c in tracer.captured.values()}}
    result_indices = leaves_behind([edge_of(t)[0] if t._requires_grad else None for t in results])
    return {values[leaf]: number for leaf, number in result_indices.items() if leaf in values}


def settled(reads: Reads, name: str) -> list[Any]:
    """End recording, restore the world outside, and return the facts. Raise TraceError if the code traced under this
    name made a change that compiled code would not repeat."""
    faults = reads.settle()
    if not faults:
        return list(reads.facts.values())
    more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
    raise TraceError(
        f"{name} changes what is outside of it while it is traced: {faults[0]}{more}; "
        "compiled code would not do so again",
        remedy="keep the value in a buffer: self.register_buffer(name, tensor) in __init__, self.name.copy_(value) in "
        "the function; or return what is needed outside; or do it outside of the compiled function",
    )


def draws(graph: Graph) -> bool:
    """Return whether a graph draws random numbers."""
    return any(node.op.has(Trait.RANDOM) for node in graph.nodes()) or any(map(draws, sub_graphs(graph)))


def _call(target: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    try:
        return target(*args, **kwargs)
    except GraphcError as error:
        module_path.note_origin(error)
        raise
    except RecursionError as error:
        raise TraceError(
            "calls in the traced function are nested more deeply than Python's limit allows "
            f"({sys.getrecursionlimit()} frames, of which a trace needs a few for each call)",
            where=graph_name(target),
            remedy="use a loop or gc.scan instead of the recursion, or raise the limit with sys.setrecursionlimit",
        ) from error


def start(graph: Graph, modules: Sequence[tuple[str, Any]]) -> Tracer:
    """Create a tracer that knows the parameters and buffers of modules; each prefix is prepended to their paths."""
    tracer = Tracer(graph)
    for prefix, module in modules:
        tracer.add_names((t, cls, f"{prefix}{path}") for t, cls, path in named_tensors(module))
    if len(modules) == 1:  # paths of nodes begin at the outermost module, so those in several modules are ambiguous
        graph.classes = module_path.class_names(modules[0][1])
    return tracer


def finish(tracer: Tracer, inputs: tuple[Value, ...], results: Sequence[Tensor], structure: Structure) -> Traced:
    """Finish a trace: append the writes of state and set the outputs."""
    differentiable = tuple(t._requires_grad for t in results)
    training = tracer.training if tracer.training is not None and tracer.training.is_used else None
    with dispatch.use(tracer):
        if training is not None:
            results = [*results, *(refresh(tracer.local(t)) for t in training.finish(tracer))]
            differentiable = (False,) * len(results)
            passed = [v for v in tracer.graph.inputs if input_class(v) == "input" and v not in inputs]
            tracer.graph.inputs = [*(v for v in tracer.graph.inputs if v not in passed), *passed]
        written = {id(entry) for entry in tracer.written()}
        tracer.finish_writes()
    tracer.graph.set_outputs([t._data for t in results])
    captured = list(tracer.captured.values())
    arguments = tuple(
        Argument(c.value, c.tensor, id(c) in written)
        for c in captured
        if c.value.node.op is INPUT and c.value not in inputs
    )
    order = {value: i for i, value in enumerate(tracer.graph.inputs)}
    constants = tuple(
        Constant(c.tensor, c.tensor._version, c.tensor._data, str(c.read_at))
        for c in captured
        if c.value.node.op is not INPUT and not tracer.is_inside(c.tensor) and not c.tensor.is_inference()
    )
    ordered = tuple(sorted(arguments, key=lambda a: order[a.value]))
    hooked = tuple(dict.fromkeys(map(str, tracer.hooked)))
    host = () if tracer.host is None else tuple(tracer.host.functions)
    fields = (tracer.graph, inputs, ordered, constants, structure, differentiable)
    reads = () if tracer.reads is None else tuple(tracer.reads.reads)
    return Traced(*fields, hooked=hooked, host=host, training=training, reads=reads)


def _images(
    graph: Graph, leaves: Sequence[Tensor], patterns: ShapePatterns | None, hints: Sequence[str]
) -> list[Tensor]:
    """Create the traced tensors that replace the tensors of a call."""
    shapes = [leaf.shape for leaf in leaves] if patterns is None else patterns.shapes
    images = []
    for leaf, shape, hint in zip(leaves, shapes, hints, strict=True):
        if isinstance(leaf, NumberTensor):
            image = NumberTensor._wrap(graph.add_input(TensorType(int64), hint, equals=shape[0]))
            image.number = shape[0]
            images.append(image)
            continue
        image = Tensor._wrap(graph.add_input(TensorType(leaf.dtype, shape), hint))
        image._requires_grad = leaf.requires_grad
        images.append(image)
    return images


def _passed(image: Tensor) -> Any:
    """Return the value the function receives for a traced tensor: for a number tensor, its size."""
    return image.number if isinstance(image, NumberTensor) else image


def graph_name(target: Any) -> str:
    """Return a name for the graph: the class of a module, or the name of a function."""
    if is_module(target):
        return getattr(target, "__dict__", {}).get("_traced_name") or type(target).__name__
    name = getattr(target, "__name__", type(target).__name__)
    return name if name.isidentifier() else "main"


def is_module(target: Any) -> bool:
    """Return whether ``target`` has named parameters and buffers, as modules have."""
    return hasattr(target, "named_parameters") and hasattr(target, "named_buffers")


def modules_of(target: Any) -> list[tuple[str, Any]]:
    """Return the modules that ``target`` is, or refers to through its closure, globals, defaults or instance, each with
    a prefix for its tensor names (empty for a single module)."""
    if is_module(target):
        return [("", target)]
    if isinstance(target, MethodType):
        owner = target.__self__
        return [("", owner)] if is_module(owner) else _modules_in(vars(owner) if hasattr(owner, "__dict__") else {})
    function = inspect.unwrap(target) if callable(target) else target
    try:
        closed = inspect.getclosurevars(function)
    except (TypeError, ValueError):
        return []
    variables = dict(closed.globals) | dict(closed.nonlocals)
    return _modules_in(variables)


def _modules_in(named: dict[str, Any]) -> list[tuple[str, Any]]:
    modules = {name: value for name, value in named.items() if is_module(value) and not isinstance(value, type)}
    if len(modules) == 1:
        return [("", next(iter(modules.values())))]
    return [(f"{name}.", module) for name, module in modules.items()]


def _input_names(target: Any, structure: Any) -> list[str]:
    """Name every example tensor after the parameters of the function."""
    positional, keyword = structure.children
    function: Callable[..., Any] = target.forward if is_module(target) and hasattr(target, "forward") else target
    hints = _parameter_names(function, len(positional.children))
    input_names: list[str] = []
    for hint, child in zip(hints, positional.children, strict=True):
        input_names += names(child, hint)
    for key, child in zip(keyword.keys, keyword.children, strict=True):
        input_names += names(child, key)
    return input_names


def _parameter_names(function: Callable[..., Any], count: int) -> list[str]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    parameter_names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][:count]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "arg")
    return [*parameter_names, *(f"{rest}.{i}" for i in range(count - len(parameter_names)))]
