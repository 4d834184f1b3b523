"""One program of a compiled function: its trace, its code, and its tensors outside."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import is_
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from graphc.autograd.record import Snapshot
from graphc.base.dtypes import dtype_of
from graphc.base.errors import GradientError, TraceError
from graphc.base.lazy import deferred
from graphc.base.records import NamedTuple
from graphc.base.sizes.size import hint
from graphc.calls.backward import Backward, CompiledNode, Higher, RecordedCall, Recorder
from graphc.calls.bindings import Binding, Frozen, Maker, Modules, PrepackedBinding, Slot
from graphc.calls.bound_program import BoundProgram, bind, binding_of, build, program_on
from graphc.calls.derivative import Derivative
from graphc.calls.forward_mode import TangentCall, pushes
from graphc.calls.machine import is_device, load_on, machine_of, target_for
from graphc.calls.memory import Budget, within_memory
from graphc.calls.number_places import NumberInputs
from graphc.calls.outside import Outside
from graphc.calls.plan import Plan, plan_of
from graphc.calls.prepacked_store import Prepacking
from graphc.calls.quick.pending_program import PendingProgram, fits_quick_tier
from graphc.calls.quick.quick_calls import QuickCalls
from graphc.calls.sized_traces import Sizes, structure_at, value_at
from graphc.compiler.cache import CacheEntry
from graphc.compiler.freeze import freeze, watch
from graphc.guards.attributes import set_again
from graphc.ir.graph.graph import Graph, input_class, input_path
from graphc.ir.graph.interpret import bound_sizes
from graphc.ops.autodiff import Split, read_before_written, split_forward_backward, vjp_graph
from graphc.passes.base import STANDARD, Pass
from graphc.tape.grad_mode import is_grad_enabled, set_grad_enabled
from graphc.tape.node import Edge, next_sequence
from graphc.tape.saved import saving
from graphc.tensors.placement import is_on_device, on_host
from graphc.tensors.structure import Branch, Leaf, Structure, given_for, shape_of, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import edges_of, front, is_counted
from graphc.tracing.host import lead_to
from graphc.tracing.identity import check_apart, repeats
from graphc.tracing.trace import Traced

if TYPE_CHECKING:
    from graphc.compiler.memory_report import MemoryReport

# Import passes only for programs that need them before the cache is asked.
MergeScans = deferred("graphc.passes.scans:MergeScans")
check_training_precision = deferred("graphc.passes.precision:check_training_precision")
narrow_weights = deferred("graphc.passes.precision:narrow_weights")
optimize = deferred("graphc.passes.pipeline:optimize")
split_within = deferred("graphc.compiler.residual_budget:split_within")
with_narrow_products = deferred("graphc.passes.pipeline:with_narrow_products")

LARGEST_COPY = 1 << 20
"""Limit in bytes on written states that calls copy for second derivatives, which are unavailable above it."""


class GuardedCalls(Protocol):
    """Calls of a program that may stop."""

    def run(self, arguments: list[Any]) -> list[Any]:
        """Return the outputs for these inputs."""
        ...


class Variant:
    """One signature of a compiled function: its programs, and their tensors outside."""

    _pending: PendingProgram | None = None
    """The program while it is built in the background."""

    def __init__(
        self,
        name: str,
        traced: Traced,
        modules: Modules,
        leaves: Sequence[Tensor],
        weights: Weights | None = None,
        passes: Sequence[Pass] = STANDARD,
        machine: str = "host",
        outside: Outside | None = None,
        tier: str = "full",
    ):
        """``outside`` is the state of the world outside at the trace (None: now). In the tier ``auto``, references may
        serve calls."""
        self.name, self._tier = name, tier
        self.weights = weights or Weights()
        self._passes = passes
        self.traced = traced
        self.structure = traced.structure
        self._aliases = traced.aliases
        self.single = isinstance(traced.structure, Leaf)
        children = traced.structure.children if isinstance(traced.structure, Branch) else ()
        self._is_tuple = traced.structure == Branch(tuple, (), (Leaf(),) * len(children))
        """Whether the result is a tuple of tensors."""
        self.numbers = NumberInputs(None)
        """Inputs for the dynamic numbers of each call."""
        self._snapshot: object = None
        """The account's snapshot at the last call of ``shortcut``."""
        self.drawn: dict[Any, dict[str, int]] = {}
        """In the middle of a module's call: the draws that its modules have made after this part of it."""
        self.training = traced.training
        self.guarded: GuardedCalls | None = None
        """Calls in place of those of the program, where non-finite numbers stop them."""
        if self.training is not None and self.weights.precision is not None:
            check_training_precision(self.weights.precision)
            self.weights, self._passes = self.weights._replace(precision=None), with_narrow_products(self._passes)
        self.memory_report: MemoryReport | None = None
        """Report of the memory budget. None without a budget, and without gradients."""
        result_values = traced.graph.outputs[: len(traced.graph.outputs) - (self.training.kept if self.training else 0)]
        self.output_types = [(v.shape, v.dtype.numpy) for v in result_values]
        outside = outside or Outside(traced, modules)
        self.outside = outside
        self.account = outside.account()
        self.assumptions = traced.assumptions
        self._effects = traced.effects
        self._slots, self._written = outside.slots, outside.written
        self.machine = machine_of(machine, [*leaves, *(slot.tensor() for slot in self._slots.values())])
        self.differentiable = traced.differentiable if is_grad_enabled() else (False,) * len(self.output_types)
        if any(self.differentiable):
            no_hooks(name, traced)
            if self.weights.for_inference:
                raise GradientError(
                    f"{name} is compiled with {self.weights}, which computes no gradients",
                    remedy=f"call it inside `with graphc.no_grad():`, or compile it without {self.weights}",
                )
            self._build_both(leaves)
        else:
            self._build_forward(self._within(traced.graph))
            self.derivative = self._derivative()
            self.sources: list[int] = []

    def _within(self, graph: Graph) -> Graph:
        """Return the graph. Where it trains under a memory budget, return one that fits the budget."""
        if self.training is None or self.weights.memory is None:
            return graph
        graph, self._passes, self.memory_report = within_memory(graph, self.weights.memory, self.machine, self._passes)
        return graph

    def _build_forward(self, graph: Graph) -> None:
        self._made: dict[str, tuple[str, Maker]] = {}
        """For the path of a param with a narrow copy: the path of its source, and the function that converts it."""
        if self.weights.freeze:
            # NOTE: do not freeze a tensor that is neither parameter nor buffer if writes to it are not counted.
            uncounted = {p for p, slot in self._slots.items() if not slot.is_member and not is_counted(slot.tensor())}
            frozen = [path for path, written in self._written.items() if not written and path not in uncounted]
            self.account.add(Frozen(self._slots[path] for path in frozen))
            graph = freeze(graph, {path: np.array(on_host(self._slots[path].tensor()._data)) for path in frozen})
        if self.weights.precision is not None:
            costs = target_for(self.machine).costs
            narrowed = narrow_weights(optimize(graph, self._passes, costs), self.weights.precision)
            graph, self._made = narrowed.graph, narrowed.params
            self._passes = STANDARD  # the graph is already optimized
        if self.weights.watched and not any(self.differentiable) and not is_device(self.machine):
            counted = {path for path, slot in self._slots.items() if is_counted(slot.tensor())}
            narrow = {path for path, (source, _) in self._made.items() if source in counted}
            if len(narrow) == len(self._made):
                graph = watch(graph, (counted - self._made.keys()) | narrow)
        if self._is_quick(graph):
            pending = PendingProgram(self.name, graph, self.machine, functools.partial(self._load, graph))
            if pending.calls() is None:
                bound = [input_path(v) for v in graph.inputs if input_class(v) != "input"]
                self._pending, written = pending, [self._written[p] for p in bound]
                self.binding = Binding([self._slots[p] for p in bound], written)
                self.calls = QuickCalls(graph, self.binding, pending.calls)
        else:
            self._load(graph, program_on(graph, self.machine, self._passes))

    def _is_quick(self, graph: Graph) -> bool:
        """Return whether the first calls need no native program."""
        if self._tier != "auto" or any(self.differentiable) or self.training is not None or self.traced.host:
            return False
        return self.weights.precision is None and fits_quick_tier(graph, self.machine, self._passes)

    def _load(self, graph: Graph, compiled: CacheEntry) -> Any:
        """Load the compiled program of a graph, and return its calls."""
        self._program = load_on(compiled, self.machine, graph)
        binding = self._binding(compiled.prepacking)
        assumed = tuple(self.assumptions.found.values())
        calls = bind(self._program, binding, self.account.words, len(self.output_types), assumed)
        if isinstance(calls, BoundProgram):
            calls.single = self.single and len(graph.outputs) == 1
        # NOTE: other threads may be calling. One that finds the new calls needs a binding that has looked up tensors.
        binding.holds()
        self.binding = binding
        self.calls = calls
        self._pending = None
        return calls

    @property
    def program(self) -> Any:
        """The native program. Wait for it where it is built in the background."""
        pending = self._pending
        if pending is not None:
            pending.calls(now=True)
        return self._program

    def _binding(self, prepacking: CacheEntry | None) -> Binding:
        # NOTE: arrays packed from narrow copies are not shared: the recipe starts at the copies, not the weights.
        first = None if prepacking is None else Prepacking(load_on(prepacking, self.machine), not self._made)
        paths = [spec.path for spec in self._program.bound]
        packed = {} if first is None else {name: i for i, name in enumerate(first.names)}
        outside = list(dict.fromkeys([*(p for p in paths if p not in packed), *(first.reads if first else ())]))
        sources = [self._made[p][0] if p in self._made else p for p in outside]
        slots, written = [self._slots[p] for p in sources], [self._written[p] for p in sources]
        makers = {i: self._made[p][1] for i, p in enumerate(outside) if p in self._made}
        if is_device(self.machine) or not (first or makers):
            return binding_of(self._program, slots, written, makers)
        number = {path: i for i, path in enumerate(outside)} | {name: len(outside) + i for name, i in packed.items()}
        takes = [number[p] for p in first.reads] if first else []
        return PrepackedBinding(slots, written, makers, first, takes, [number[p] for p in paths])

    def _build_both(self, leaves: Sequence[Tensor]) -> None:
        """Compile forward and backward as two programs. Forward passes residuals to backward."""
        graph = self.traced.graph
        count = len(graph.inputs)
        plain = list(self.traced.inputs)
        differentiated = [v for v, leaf in zip(plain, leaves, strict=True) if leaf._requires_grad]
        differentiated += [a.value for a in self.traced.arguments if a.tensor._requires_grad]
        # As in eager mode, unreached tensors get no gradient, not even zeros: optimizers skip them.
        differentiated = [v for v in differentiated if v in self.traced.reached]
        chosen = [i for i, d in enumerate(self.differentiable) if d]
        joint = MergeScans().run(vjp_graph(graph, differentiated, chosen)).graph
        split = self._split(joint, count, len(graph.outputs))
        self._build_forward(split.forward)
        self.backward_program = build(split.backward, self._passes, self.machine)
        self.residual_count = split.residuals
        saved_inputs = [graph.inputs[i] for i in split.kept]
        position = {v: i for i, v in enumerate(plain)}
        tensors = len(plain)
        numbers = {spec.path: tensors + i for i, spec in enumerate(self.program.bound)}
        self.kept_plain = [position[v] for v in saved_inputs if v in position]
        """Indices of the inputs that backward reads."""
        self.kept_bound = [numbers[spec.path] for spec in self.backward_program.bound]
        """Indices of the params that backward reads, counted after the inputs."""
        self.backward = Backward(
            self.name, self.backward_program, self.binding, self.differentiable, len(self.kept_plain)
        )
        order = [position[v] if v in position else numbers[v.node.attrs["path"]] for v in graph.inputs]
        early = read_before_written(graph, joint)
        self._early = [order[i] - tensors for i in early]
        """Indices in the binding of params whose values before the call second derivatives need."""
        large = sum(hint(graph.inputs[i].type.nbytes) for i in early) > LARGEST_COPY
        refused = graph.inputs[early[0]].node.attrs["path"] if large else None
        self.derivative = self._derivative()
        self.backward.higher = Higher(self.derivative, order, [graph.inputs.index(v) for v in differentiated], refused)
        if large:
            self._early = []
        self._counters: tuple[Any, list[Any]] = (None, [])
        self.sources = [position[v] if v in position else numbers[v.node.attrs["path"]] for v in differentiated]
        """Targets of the gradients: indices of inputs, then of params in the order of the binding."""

    def _derivative(self) -> Derivative:
        """Return the traced function for derivatives."""
        graph = self.traced.graph
        return Derivative(self.name, lambda: (graph, []), self._passes, self.machine)

    @functools.cached_property
    def pushes(self) -> bool:
        """Whether programs can propagate tangents."""
        return not self.weights.for_inference and not is_device(self.machine) and pushes(self.traced)

    def along(self, leaves: Sequence[Any]) -> TangentCall:
        """Return a call on tensors that may have tangents, before it runs."""
        position = {v: i for i, v in enumerate(self.traced.inputs)}
        inputs = self.traced.graph.inputs
        paths = ["" if v in position else input_path(v) for v in inputs]
        tensors = [self._slots[p].tensor() if p else leaves[position[v]] for v, p in zip(inputs, paths, strict=True)]
        written = [bool(p) and self._written[p] for p in paths]
        sizes = self._sizes_of(leaves) if self.program.manifest.dims else None
        return TangentCall(self.derivative, tensors, written, sizes)

    def _split(self, joint: Graph, inputs: int, outputs: int) -> Split:
        budget = self.weights.memory
        if budget is None:
            return split_forward_backward(joint, inputs, outputs)
        budgeted = split_within(joint, inputs, outputs, budget, target_for(self.machine), self._passes)
        self.memory_report = budgeted.report
        if budgeted.is_optimized:
            self._passes = STANDARD  # the graphs are already optimized
        return budgeted.split

    @property
    def graph(self) -> Graph:
        """The unoptimized graph."""
        return self.traced.graph

    @property
    def slots(self) -> dict[str, Slot]:
        """The slots of the trace's params and states, by path."""
        return self._slots

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors of the program's params and states, by path."""
        return {spec.path: self._slots[spec.path].tensor() for spec in self.program.bound}

    @property
    def passed_numbers(self) -> dict[Any, np.ndarray]:
        """The optimizers' numbers among the program's inputs, as its last ones, in order, with their present values."""
        passed = None if self.training is None else self.training.passed
        return {} if passed is None else dict(zip(passed.keys(), passed.arrays(), strict=True))

    def holds(self) -> bool:
        """Check that the world outside is unchanged since the trace, apart from the contents of tensors."""
        return self.binding.holds() and self.account.holds()

    def why(self) -> list[str]:
        """Return what changed."""
        return [*self.numbers.why(), *self.binding.why(), *self.account.why()]

    def run(self, leaves: Sequence[Any], sizes: Sizes | None = None) -> Any:
        """Call the program, and record the call on the autograd tape where it is differentiable.

        ``sizes`` are the sizes of the named dimensions, if there are any.
        """
        if self.traced.written:
            check_apart(self.name, self.traced.written, leaves)
        state: dict[Any, Any] = {}
        arguments = [*map(given_for, leaves)]
        early = [(i, self.binding.arrays()[i].copy()) for i in self._early] if self.sources else ()
        if self.training is not None and self.training.passed is not None:
            arguments += self.training.passed.arrays()
        run = self.calls.run if self.guarded is None else self.guarded.run
        first, edges = 0, None
        if self.traced.host:
            # Created before the run: the inputs of the call's node must be older than the node.
            edges, first = self._edges(leaves), next_sequence()
            owner = self if self.binding.written else None
            run = self.outside.serving(run, self.traced.host, state, owner, self.guarded is not None)
        arrays = run(arguments)
        structure, effects = self.structure, self._effects
        if sizes:
            structure = structure_at(structure, sizes)
            effects = tuple([(table, name, value_at(value, sizes)) for table, name, value in effects])
        if effects:
            set_again(effects)
        count = len(self.output_types)
        results = [*map(Tensor._wrap, arrays[:count])]
        if self.training is not None:
            self.training.done(arrays[count:])
        elif self.sources:
            node = self._record(leaves, results, arrays[count:], state, edges or self._edges(leaves))
            node.call = self._call(leaves, arguments, early)
            if self.traced.host:
                # Nodes of Python functions that ran inside the call come after the call's node.
                node.sequence = first
                lead_to(state, node)
        return self._nested(results, leaves, structure, sizes)

    def _nested(
        self, results: list[Tensor], leaves: Sequence[Tensor], structure: Structure, sizes: Sizes | None
    ) -> Any:
        """Nest the results as the function does, with tensors from outside and their views instead of copies."""
        for alias in self._aliases:
            source = alias.source
            if isinstance(source, str):
                tensor = self._slots[source].tensor()
            else:
                tensor = source if isinstance(source, Tensor) else leaves[source]
            with set_grad_enabled(is_grad_enabled() and not alias.is_detached):
                for op, attrs in alias.steps:
                    tensor = front().apply(op, (tensor,), {n: bound_sizes(v, sizes or {}) for n, v in attrs.items()})
            results[alias.output] = tensor
        if self.single:
            return results[0]
        return tuple(results) if self._is_tuple else unflatten(structure, results)

    def shortcut(self) -> Callable[..., Any] | None:
        """Return the native callable where a call needs nothing else: one result or a tuple of results, no history,
        nothing to count or compare.
        """
        if not isinstance(self.calls, BoundProgram) or not self._is_determined or not self.account.is_certain:
            return None
        if not (self.calls.single or self._is_tuple) or self.sources or self.binding.written:
            return None
        if isinstance(self.binding, PrepackedBinding) and self.binding.versions() is None:
            return None
        return self.calls.native() if self.numbers.is_empty else self._with_numbers(self.calls.native())

    @property
    def _is_determined(self) -> bool:
        """Whether a call depends only on epochs, watched words, facts that are always checked, and arguments, and does
        nothing but return results.
        """
        if self._effects or self.drawn or self.training is not None or self.traced.host or self._aliases:
            return False
        if self._made or not self.account.is_watched:
            return False
        return len(self.traced.inputs) <= 1 or not (self.traced.written or self.traced.attributes.compares_identity)

    def recorder(self, epoch: int, leaves: Sequence[Any]) -> Recorder | None:
        """Return the short way of calls with gradients that are like the one before, on ``leaves``; None where a call
        needs more than a native call and a node.
        """
        if not self.sources or not isinstance(self.calls, BoundProgram) or not self._is_determined:
            return None
        if self.traced.written or self.program.manifest.dims or not self.numbers.is_empty or repeats(leaves):
            return None
        again = (*self.kept_plain, *self.kept_bound)
        tensors = self.binding.tensors()
        if self.binding.is_loose or any([tensors[i - len(leaves)]._counter is None for i in self.kept_bound]):
            return None
        structure = self.structure
        result_of = None if self.single else lambda results: unflatten(structure, results)
        types = [(shape, dtype_of(dtype)) for shape, dtype in self.output_types]
        call, always = self.calls.native(), self.account.always
        parts = self.binding, self.backward, self.sources, again, self._early
        return Recorder(epoch, always, call, leaves, *parts, result_of, types)

    @property
    def is_more_than_a_function(self) -> bool:
        """Whether a call depends on or changes anything besides its arguments and results."""
        traced = self.traced
        dependencies = (
            self._slots,
            traced.constants,
            self._effects,
            self.drawn,
            traced.host,
            traced.written,
            self.assumptions.found,
        )
        return any(map(bool, dependencies)) or self.training is not None or not self.numbers.is_empty

    def _with_numbers(self, call: Callable[..., Any]) -> Callable[..., Any] | None:
        """Return the native callable with the present numbers of attributes, valid while the watched words are
        unchanged.

        Return None where the numbers changed since the previous call.
        """
        account, snapshot = self.account, self.account.taken
        if self._snapshot is not snapshot or not self.numbers.are_watched:
            self._snapshot = snapshot

            return None
        numbers = self.numbers.tensors([])
        # NOTE: re-check after reading. Only then do these numbers belong to the words that were compared.
        if numbers is None or not account.stands(snapshot):
            return None
        arrays = [t._data for t in numbers]
        return lambda *arguments: call(*arguments, *arrays) if account.taken is snapshot else None

    def versions(self) -> tuple[list[list[int]], list[list[int]]]:
        """Return two lists that stay equal while the shortcut is valid."""
        versions_pair = self.binding.versions() if isinstance(self.binding, PrepackedBinding) else None
        return versions_pair or ([], [])

    used: int
    """Sequence number of the last use, set by the store."""

    @property
    def nbytes(self) -> int:
        """Bytes of code, constants, scratch memory and reused outputs."""
        return self.calls.nbytes + (self.backward_program.nbytes if self.sources else 0)

    @property
    def plans(self) -> list[Plan]:
        """The plan for the expected sizes, as a list."""
        return [self.plan()]

    def plan(self, leaves: Sequence[Tensor] | None = None) -> Plan:
        """Return the cost of a call on ``leaves``, or at the expected sizes. Nothing is called."""
        sizes: dict[str, int] = {}
        if leaves is not None and self.program.manifest.dims:
            sizes = self._sizes_of(leaves)
        programs = [self.program, self.backward_program] if self.sources else [self.program]
        return plan_of(*programs, sizes=sizes)

    def _sizes_of(self, leaves: Sequence[Any]) -> dict[str, int]:
        """Return the sizes of named dimensions in a call on tensors."""
        numbers = [spec.shape for spec in self.program.inputs[len(leaves) :]]
        return self.program.sizes.named((*map(shape_of, leaves), *numbers))

    def prepacked(self) -> Sequence[np.ndarray]:
        """Return the binding's arrays made from weights."""
        return self.binding.made()

    @property
    def is_thrashing(self) -> bool:
        """Whether its weights were written to between nearly all calls."""
        return isinstance(self.binding, PrepackedBinding) and self.binding.is_thrashing()

    @property
    def is_stale(self) -> bool:
        """Whether the program will not fit again, or is not worth keeping."""
        return self.is_thrashing or (isinstance(self.binding, PrepackedBinding) and self.binding.is_escaped())

    def _edges(self, leaves: Sequence[Any]) -> tuple[Edge, ...]:
        """Return the autograd edges that receive the gradients of a call."""
        everything = (*leaves, *self.binding.tensors())
        return edges_of([everything[i] for i in self.sources])

    def _record(
        self,
        leaves: Sequence[Any],
        results: list[Tensor],
        residuals: list[Any],
        state: dict[Any, Any],
        edges: tuple[Edge, ...],
    ) -> CompiledNode:
        everything = (*leaves, *self.binding.tensors())
        saved = [
            Snapshot(everything[i], None, f"an argument of the compiled {self.name}")
            for i in (*self.kept_plain, *self.kept_bound)
        ]
        if saving.get() is not None:
            residuals = [Snapshot(Tensor._wrap(a), None, f"a value of the compiled {self.name}") for a in residuals]
        types = [(t._data.shape, dtype) for t, (_, dtype) in zip(results, self.output_types, strict=True)]
        sizes = self._sizes_of(leaves) if self.backward_program.sizes.are_given else None
        node = CompiledNode(self.backward, edges, residuals, saved, types, sizes)
        node.host = (self.traced.host, state)
        node.on_device = [is_on_device(everything[i]._data) for i in self.sources]
        for i, result in enumerate(results):
            if self.differentiable[i]:
                result._node, result._index, result._requires_grad = node, i, True
        return node

    def _call(self, leaves: Sequence[Any], arguments: Sequence[Any], early: Sequence[tuple[int, Any]]) -> RecordedCall:
        """Return the arrays of this call and their version counters, for second derivatives."""
        bound = tuple([t._data for t in self.binding.tensors()])
        previous, counters = self._counters
        if previous is None or len(previous) != len(bound) or not all(map(is_, previous, bound)):
            written = set(self.binding.written)
            counters = [None if i in written else t._counter for i, t in enumerate(self.binding.tensors())]
            self._counters = bound, counters
        arrays: Sequence[Any] = (*arguments, *bound)
        if early:
            copied = {len(arguments) + i: array for i, array in early}
            arrays = [copied.get(i, array) for i, array in enumerate(arrays)]
        sizes = self._sizes_of(leaves) if self.program.manifest.dims else None
        return RecordedCall(arrays, [*[t._counter for t in leaves], *counters], sizes)


class Weights(NamedTuple):
    """Options for the read-only parameters and buffers of a compiled function."""

    precision: str | None = None
    freeze: bool = False
    live: bool = False
    """Whether nothing derived from the weights is cached between calls."""
    memory: Budget | None = None
    """Limit on the memory of values saved for gradients."""

    @property
    def watched(self) -> bool:
        """Whether values derived from the weights are cached until their versions change."""
        return not (self.live or self.freeze)

    @property
    def for_inference(self) -> bool:
        """Whether the options rule out gradients."""
        return self.freeze or self.precision is not None

    def __str__(self) -> str:
        options = [f"precision={self.precision!r}"] if self.precision is not None else []
        return ", ".join([*options, "freeze=True"] if self.freeze else options)


def no_hooks(name: str, traced: Traced) -> None:
    """Raise TraceError where hooks of traced tensors need gradients computed outside the trace."""
    if traced.hooked:
        raise TraceError(
            f"{name}: a hook on a tensor computed inside a compiled function would not be called",
            origin=traced.hooked[0],
            remedy="register it outside, on an argument or a parameter; use graphc.autograd.Function with its own "
            "backward; or compute the gradient inside the compiled function",
        )
