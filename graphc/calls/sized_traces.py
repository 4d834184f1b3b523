"""Traces of functions whose arguments have named dimensions: match them to calls, and specialize them to sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from graphc.base.errors import ArgumentError
from graphc.base.locks import Lock
from graphc.base.records import NamedTuple
from graphc.base.sizes.assumptions import Assumptions
from graphc.base.sizes.named_dims import chosen_sizes
from graphc.base.sizes.shape_patterns import ShapePatterns
from graphc.base.sizes.size import Dimension, SizeNumber, at
from graphc.base.sizes.size_limits import answered, limits
from graphc.calls.auto_dims import AutoDims
from graphc.calls.number_places import DynamicValues, NumberInputs
from graphc.calls.outside import Outside
from graphc.calls.program_store import OneForAll, ProgramStore
from graphc.ir.graph.graph import Graph, input_class, input_equals
from graphc.ir.graph.interpret import assumed, bind
from graphc.tensors.structure import Leaf, Static, Structure, shape_of
from graphc.tensors.tensor import Tensor
from graphc.tracing.dims import Dims
from graphc.tracing.trace import Traced, graph_name

Sizes = Mapping[Dimension, int]
REMEMBERED = 256
"""Limit on the argument shapes whose sized calls are cached."""


class SizedCall(NamedTuple):
    """The shapes of a call as patterns of named dimensions, and the sizes of these dimensions."""

    patterns: ShapePatterns
    sizes: Sizes
    bound: Sizes
    """Sizes of dimensions at their common sizes, for which separate programs exist."""
    shapes: Sequence[tuple[Any, ...]]
    """The patterns with common sizes substituted."""

    @staticmethod
    def of(patterns: ShapePatterns, sizes: Sizes) -> SizedCall:
        """Return the call with these sizes."""
        bound = {d: n for d, n in sizes.items() if n in d.common}
        if not bound:
            return SizedCall(patterns, sizes, bound, patterns.shapes)
        values = chosen_sizes({d.name: d for d in sizes}, {d.name: n for d, n in bound.items()})
        return SizedCall(patterns, sizes, bound, [tuple([at(n, values) for n in s]) for s in patterns.shapes])

    def key(self, key: tuple[Any, ...], program: bool = False) -> tuple[Any, ...]:
        """Return the key of a call (see calls.recompile_reasons.Key) with patterns instead of shapes. With ``program``,
        substitute common sizes.
        """
        shape, leaves, *rest = key
        shapes = self.shapes if program else self.patterns.shapes
        return (shape, tuple([(t[0], s, *t[2:]) for t, s in zip(leaves, shapes, strict=True)]), *rest)

    def arguments(self) -> dict[str, Any]:
        """Return keyword arguments for ``trace_function``."""
        return {"patterns": self.patterns, "assumptions": Assumptions(self.sizes)}


class DimsOfCalls:
    """The named dimensions of a function's arguments, as declared or as inferred from its calls."""

    def __init__(self, dims: Any, function: Callable[..., Any], names: Sequence[str] = ()):
        """For ``dims`` see ``compile``; for a function that runs a graph None uses the graph's dimensions. ``names``
        are the names of the arguments where the function's signature has none.
        """
        graph = getattr(function, "_graph", None)
        if dims is None and isinstance(graph, Graph) and graph.dims:
            inputs = [v for v in graph.inputs if input_class(v) == "input"]
            dims = [v.shape if input_equals(v) is None else input_equals(v) for v in inputs]
        self._auto = AutoDims(graph_name(function), function, names) if isinstance(dims, str) else None
        if isinstance(dims, str) and dims != "auto":
            raise ArgumentError(f"dims is {dims!r}", remedy="pass dims={'x': (gc.Dim('batch'),)}, or dims='auto'")
        self._declared = None if dims is None or self._auto else Dims(dims, function, names)
        self.is_any = dims is not None
        """Whether named dimensions are possible."""
        self._lock = Lock()
        self._known: dict[Any, tuple[int, SizedCall | None]] = {}
        self._patterns: dict[Any, ShapePatterns] = {}
        """Patterns of the last uncached call, by structure and shapes. Calls with other numbers share them."""

    def with_numbers(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a call with tensors for whole-number sizes."""
        return (args, kwargs) if self._declared is None else self._declared.with_numbers(args, kwargs)

    def of(self, structure: Structure | int, leaves: Sequence[Tensor]) -> SizedCall | None:
        """Return the sizes in a call; None where no size has a name. Raise ArgumentError and ShapeError."""
        if not self.is_any:
            return None
        form = structure, tuple([(leaf.dtype, shape_of(leaf)) for leaf in leaves])
        cached = self._known.get(form)
        if cached is None or cached[0] != (self._auto.changes if self._auto else 0):
            with self._lock:
                sized_call = self._made(structure, leaves)
                cached = self._auto.changes if self._auto else 0, sized_call
                if len(self._known) >= REMEMBERED:
                    self._known.clear()
                self._known[form] = cached
        return cached[1]

    def _made(self, structure: Structure | int, leaves: Sequence[Tensor]) -> SizedCall | None:
        shapes = [shape_of(leaf) for leaf in leaves]
        if self._declared is not None:
            form = structure, tuple([leaf._data.shape for leaf in leaves])
            patterns = self._patterns.get(form)
            if patterns is None:
                self._declared = self._declared.expecting(structure, leaves)
                self._patterns.clear()
                patterns = self._patterns[form] = self._declared.patterns(structure, leaves)
        else:
            assert self._auto is not None
            patterns = self._auto.patterns(structure, [(t.dtype, s) for t, s in zip(leaves, shapes, strict=True)])
        return None if patterns is None else SizedCall.of(patterns, patterns.solve(shapes))


Program = TypeVar("Program")


def keys_of(call: SizedCall | None, key: Any) -> tuple[Any, ...]:
    """Return the keys under which the table may have a program for a call. The last one has the exact sizes."""
    return (key,) if call is None else (call.key(key, program=True), key)


def program_for(
    trace: SizedTrace, call: SizedCall | None, key: Any, make: Callable[[Any, Traced], Program]
) -> tuple[Program, Any]:
    """Make a program of a trace and return it with its key.

    It serves all sizes of the call's named dimensions without a common size. Where a stage of the compiler asks a
    question about sizes, its answer becomes an assumption of the trace. Where no such program can be made, it serves
    the sizes of the call.
    """
    if call is None:
        return make(key, trace.traced), key
    general = call.key(key, program=True)
    return trace.one_for_all.make(
        lambda: (make(general, trace.at(call.bound)), general),
        lambda: (make(key, trace.at(call.sizes)), key),
        lambda error: answered(error, trace.traced.assumptions, trace.traced.graph.dims),
    )


class SizedTrace:
    """One trace of a function, from which programs are made. Without dimensions the trace is used as it is."""

    nbytes = 0
    """See program_store: the memory of traces is not limited."""

    def __init__(self, name: str, traced: Traced, outside: Outside, numbers: NumberInputs, drawn: Any = None):
        """``name`` names the function in messages."""
        self.traced = traced
        self.outside = outside
        self.numbers = numbers
        """The inputs by which its programs take dynamic numbers."""
        self.drawn: dict[Any, dict[str, int]] = drawn or {}
        """In the middle of a module's call: the draws that its modules have made after this part of it."""
        self.one_for_all = OneForAll(name)
        self._account = outside.account()
        self._refused: Sizes | None = None

    def fitting(self, sizes: Sizes, dynamic: DynamicValues) -> list[Tensor] | None:
        """Return the number inputs for a call with these sizes and dynamic numbers.

        Return None where the trace does not hold for them, or the world outside has changed.
        """
        if self.traced.assumptions.broken(sizes) is not None:
            self._refused = sizes
            return None
        return self.numbers.tensors(dynamic) if self._account.holds() else None

    def why(self) -> list[str]:
        """Explain why the trace did not fit."""
        reasons = [*self.numbers.why(), *self._account.why()]
        broken = None if self._refused is None else self.traced.assumptions.broken(self._refused)
        if broken is not None and self._refused is not None:
            sizes = sorted(f"{d.name} = {n}" for d, n in self._refused.items())
            reasons.append(f"sizes: traced for {broken}, now {', '.join(sizes)}")
        return reasons

    def at(self, sizes: Sizes) -> Traced:
        """Return the trace specialized to these sizes of some dimensions. Restrict the others to the assumptions on
        each.

        Its results besides tensors remain those for all sizes.
        """
        traced = self.traced
        dims = traced.graph.dims
        traced.graph.assumptions = tuple(traced.assumptions.found.values())
        limited = limits(traced.graph.assumptions, dims)
        limited |= {d.name: n for d, n in sizes.items() if d.name in dims}
        with assumed(traced.graph, limited):
            graph = bind(traced.graph, limited)
        specialized = replace(traced.on(graph), assumptions=traced.assumptions.bound(sizes))
        if not all(d in sizes for d in dims.values()):
            return specialized
        effects = tuple((table, name, value_at(value, sizes)) for table, name, value in traced.effects)
        return replace(specialized, structure=structure_at(traced.structure, sizes), effects=effects)


class SizedTraces(ProgramStore[SizedTrace]):
    """The traces of one function by the form of their arguments, newest first."""

    def fitting(self, key: Any, sizes: Sizes, dynamic: DynamicValues) -> tuple[SizedTrace, list[Tensor]] | None:
        """Return a trace that fits a call, and the number inputs of its programs."""
        for trace in self.find(key):
            if (numbers := trace.fitting(sizes, dynamic)) is not None:
                return trace, numbers
        return None


def structure_at(structure: Structure, sizes: Sizes) -> Structure:
    """Return a structure with numbers in place of symbolic sizes."""
    if isinstance(structure, Leaf):
        return structure
    if isinstance(structure, Static):
        value = value_at(structure.value, sizes)
        return structure if value is structure.value else Static(value)
    children = tuple([structure_at(child, sizes) for child in structure.children])
    return structure.with_children(children)


def value_at(value: Any, sizes: Sizes) -> Any:
    """Return the value of a number computed from sizes, for these sizes; other values as they are."""
    return value.at(sizes) if type(value) is SizeNumber else at(value, sizes)
