"""Compiled functions: trace and build at the first call of each signature, and take part in eager autograd."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from graphc.base import config, module_path
from graphc.base.autocast_state import autocast_dtype, is_autocast_enabled
from graphc.base.errors import ArgumentError, GraphcError
from graphc.base.foreign import no_class, no_foreign_module
from graphc.base.host_parts import CompiledParts, host_parts_of
from graphc.base.lazy import deferred
from graphc.base.locks import Lock
from graphc.base.mutation_epoch import EPOCH
from graphc.base.progress import COMPILED, shown
from graphc.calls.backward import Recorder
from graphc.calls.bindings import Modules
from graphc.calls.bound_program import NO_SHORTCUT, Shortcut, native_arguments
from graphc.calls.first_nan.level import check_level
from graphc.calls.machine import HOST, machine_named, machine_of
from graphc.calls.memory import Budget
from graphc.calls.number_places import MOST_ANSWERS, DynamicNumbers, DynamicValues, Fresh
from graphc.calls.outside import Outside
from graphc.calls.plan import Plan
from graphc.calls.program_store import ProgramStore, trim
from graphc.calls.quick.pending_program import SizedBuildError, tier_named
from graphc.calls.recompile_reasons import Recompiles
from graphc.calls.recompile_warning import RecompileCount, argument_names
from graphc.calls.segments import Answers, ProgramSegment, Segmented, TracedPath, no_training
from graphc.calls.sized_traces import DimsOfCalls, SizedCall, SizedTrace, SizedTraces, keys_of, program_for
from graphc.calls.torch_arguments import without_torch_arguments
from graphc.calls.user_passes import passed
from graphc.calls.variant import Variant, Weights
from graphc.compiler.tune_budget import TuneBudget, searching, tier_for_tuning
from graphc.ir.graph.graph import Graph
from graphc.ops import dispatch
from graphc.ops.dispatch import active
from graphc.passes.base import STANDARD, Pass
from graphc.tape.grad_mode import enable_grad, is_grad_enabled
from graphc.tape.tangents import USED, levels, only
from graphc.tensors.random.generator import UNCERTAIN, drawn
from graphc.tensors.structure import Structure, check_static, flatten, shape_of, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import refresh
from graphc.tracing.identity import repeats
from graphc.tracing.reads import ValueReads, traced_with_reads
from graphc.tracing.trace import (
    Traced,
    draws,
    graph_name,
    is_module,
    is_tracing,
    modules_of,
    no_collector,
    runs_as_python,
    trace_function,
)

if TYPE_CHECKING:
    from graphc.compiler.memory_report import MemoryReport

_T = TypeVar("_T")
GraphModule = deferred("graphc.calls.graph_module:GraphModule")
GuardedCalls = deferred("graphc.calls.first_nan.guarded_calls:GuardedCalls")
arrange = deferred("graphc.passes.pipeline:arrange")
as_callable = deferred("graphc.calls.graph_module:as_callable")
check_precision = deferred("graphc.passes.precision:check_precision")
with_check = deferred("graphc.calls.first_nan.guarded_calls:with_check")


_Match = tuple[Variant, Any, list[Tensor]]
"""A variant, its key in the table, and the dynamic numbers of the call as tensors."""


class Compiled:
    """A module or function that runs as native code. Attribute access goes to the compiled target.

    Copies and pickles contain the target, and compile it again at their first call.

    Example:
        >>> import graphc as gc
        >>> compiled = gc.compile(gc.nn.Linear(3, 2))
        >>> compiled(gc.ones(4, 3)).shape, compiled(gc.ones(5, 3)).shape
        ((4, 2), (5, 2))
        >>> len(compiled.programs)
        2
    """

    is_compiled = True

    def __init__(
        self,
        target: Callable[..., Any],
        precision: str | None = None,
        freeze: bool = False,
        passes: Sequence[Pass] = (),
        machine: str = HOST,
        dims: Any = None,
        memory: int | str | None = None,
        first_nan: bool | str = False,
        tier: str = "full",
        tune: float | None = None,
    ):
        if not callable(target):
            raise ArgumentError(f"a module or a function can be compiled, not {type(target).__name__}")
        no_class("compile", target)
        no_foreign_module("compile", target)
        if precision is not None:
            check_precision(precision)
        check_level("compile", first_nan)
        self._target, self.first_nan, self._has_root = target, first_nan, is_module(target)
        self._memory, self._tier = memory, "full" if first_nan else tier
        self._weights = Weights(precision, freeze, memory=None if memory is None else Budget.parse(memory))
        self._passes, self._machine = tuple(passes), machine
        self._tune = None if tune is None else TuneBudget(tune)
        self._first, self._pipeline = arrange(self._passes) if passes else ((), STANDARD)
        self._variants: ProgramStore[Variant] = ProgramStore(self._forget)
        self._modules: Modules | None = None
        self._dims = dims
        self._calls = DimsOfCalls(dims, target)
        self._traces = SizedTraces()
        self._numbers = DynamicNumbers()
        self._shortcut = NO_SHORTCUT
        self._recorder: Recorder | None = None
        """The short way of calls with gradients."""
        self._draws = False
        """Whether a variant draws random numbers."""
        self._lock = Lock()
        self._log = config.logger("compile")
        self._name = graph_name(target)
        self._recompiles = Recompiles(self._name)
        self._recompile_count = RecompileCount(self._name, functools.partial(argument_names, target))
        if not is_module(target):
            functools.update_wrapper(self, target, updated=())

    @shown(COMPILED, lambda call: call["self"]._name)
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the variant for the signature of the arguments. Trace and build it at the first such call."""
        if active() is not None or kwargs or is_autocast_enabled() or (USED[0] and levels.get()):
            return self._in_a_tier(self._find_and_run, args, kwargs)
        epoch, inputs, grad_enabled, call, dtype, counters, versions, numbers = self._shortcut
        if epoch == EPOCH[0] and counters == versions and is_grad_enabled() is grad_enabled:
            arrays = (
                native_arguments(args, grad_enabled)
                if numbers
                else [
                    t._data
                    for t in args
                    if t.__class__ is Tensor and not (grad_enabled and (t._requires_grad or t._view is not None))
                ]
            )
            # NOTE: the native call itself compares element types, shapes and number of the arrays.
            if len(arrays) == len(args) == inputs:
                array = call(*arrays)
                if array is not None:
                    if dtype is None:
                        return tuple([Tensor._wrap(each) for each in array])
                    result = object.__new__(Tensor)
                    result._data, result.dtype, result._counter = array, dtype, [0]
                    return result
        recorder = self._recorder
        if (
            recorder is not None
            and recorder.epoch == EPOCH[0]
            and is_grad_enabled()
            and not (self._draws and module_path.scope())
        ):
            result = recorder.run(args)
            if result is not None:
                return result
        return self._in_a_tier(self._find_and_run, args, kwargs)

    def _in_a_tier(self, run: Callable[..., _T], *arguments: Any) -> _T:
        """Return the result of ``run``. Repeat it in the tier ``full`` where no program can be built for all sizes:
        that tier also has programs for some sizes, and for single ones.
        """
        try:
            return run(*arguments)
        except SizedBuildError:
            self._tier = "full"
            self._renewed_modules()
            return run(*arguments)

    def _find_and_run(self, args: tuple[Any, ...], kwargs: dict[str, Any], only_find: bool = False) -> Any:
        epoch = EPOCH[0]
        if runs_as_python() or dispatch.runs_python():
            return self._run_with_tangents(args, kwargs)
        structure: Structure | int
        if not kwargs and all([isinstance(a, Tensor) for a in args]):
            leaves: Sequence[Any] = args
            structure = len(args)
        else:
            args, kwargs, leaves, structure = self._flattened(args, kwargs)
        modules = self._modules
        if modules is None or not modules.holds():
            modules = self._renewed_modules()
        grad_enabled = is_grad_enabled()
        signature = [(t.dtype, shape_of(t), grad_enabled and refresh(t)._requires_grad) for t in leaves]
        scope = module_path.scope() if self._draws else None
        position = scope and self._random_position(scope)
        shape, dynamic = self._numbers.split(structure)
        machine = machine_of(self._machine, leaves)
        flags = modules.training(), grad_enabled
        key = (shape, tuple(signature), *flags, repeats(leaves), machine, autocast_dtype(), position)
        call = self._calls.of(structure, leaves)
        match, new_match = self._find_variant(key, dynamic, call), None
        if match is None:
            match = new_match = self._new_variant(key, structure, modules, args, kwargs, call)
        variant, key, numbers = match
        if new_match is None and variant is not self._variants.last:
            self._variants.use(variant)
        if only_find:
            return variant, [*leaves, *numbers]
        result = variant.run([*leaves, *numbers] if numbers else leaves, call and call.sizes)
        if variant.drawn and (scope := module_path.scope()):
            scope.memory.update({generator: dict(counts) for generator, counts in variant.drawn.items()})
        if leaves is args and not is_autocast_enabled():
            self._shorten(variant, epoch, leaves, result, not isinstance(structure, int))
        if new_match is not None:
            trim()
            self._recompile_count.note(key, 4)
        return result

    def _renewed_modules(self) -> Modules:
        """Return the modules of the function. Drop all programs: a module was added, removed or replaced."""
        modules = self._modules = Modules(m for _, m in self._named_modules())
        self._variants.clear()
        self._traces.clear()
        return modules

    def _shorten(self, variant: Variant, epoch: int, leaves: Sequence[Tensor], result: Any, numbers: bool) -> None:
        """Prepare the short way of calls like this one."""
        if variant.sources:
            # NOTE: random numbers inside another module's call depend on the draws of that call before.
            self._recorder = None if self._draws and module_path.scope() else variant.recorder(epoch, leaves)
        elif call := variant.shortcut():
            dtype, versions = result.dtype if variant.single else None, variant.versions()
            self._shortcut = Shortcut(epoch, len(leaves), is_grad_enabled(), call, dtype, *versions, numbers)

    def _short_way(self) -> Shortcut | None:
        """Return the short way of calls without gradients that are like the last one; None where there is none now."""
        now = self._shortcut
        return now if now.epoch == EPOCH[0] and now.grad_enabled is is_grad_enabled() else None

    def _run_with_tangents(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a call whose tensors may carry tangents: by programs where they can propagate tangents, else in Python.

        Run Python inside a trace too, and where functions are told to run as Python.
        """
        if is_tracing() or dispatch.runs_python():
            return self._target(*args, **kwargs)
        with only(()):
            try:
                # NOTE: values computed without gradients still carry tangents, so the trace must record all of them.
                with enable_grad():
                    variant, leaves = self._find_and_run(args, kwargs, only_find=True)
            except GraphcError:
                # NOTE: Python code may work where tracing fails. It raises the error itself if the call is wrong.
                variant, leaves = None, []
        if variant is None or isinstance(variant, Segmented):
            return self._target(*args, **kwargs)
        along = variant.along(leaves)
        if not along.moves:
            with only(()):
                return self._find_and_run(args, kwargs)
        if not variant.pushes or not along.prepare():
            return self._target(*args, **kwargs)
        with only(()), enable_grad():
            result = self._find_and_run(args, kwargs)
        return along.give(result)

    def _flattened(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any], Sequence[Tensor], Structure]:
        """Replace whole-number sizes by tensors. Return the arguments, their flat tensors, and their
        structure.
        """
        args, kwargs = self._calls.with_numbers(args, kwargs)
        leaves, structure = flatten((args, kwargs))
        plain = not kwargs and all([isinstance(a, Tensor) for a in args])
        return args, kwargs, args if plain else leaves, structure

    def _forget(self) -> None:
        """Drop the shortcuts: their programs may have left the table."""
        self._shortcut, self._recorder = NO_SHORTCUT, None

    def _find_variant(self, key: Any, dynamic: DynamicValues, call: SizedCall | None) -> _Match | None:
        """Return the variant for a call, its key, and the call's dynamic numbers as tensors, or None.

        With named dimensions one variant serves all their sizes. Where none can be made for all, there is one for the
        exact sizes of the call.
        """
        for candidate in keys_of(call, key):
            for variant in self._variants.find(candidate):
                fits = call is None or variant.assumptions.broken(call.sizes) is None
                if fits and variant.holds() and (numbers := variant.numbers.tensors(dynamic)) is not None:
                    return variant, candidate, numbers
        return None

    def _new_variant(
        self,
        key: Any,
        structure: Structure | int,
        modules: Modules,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        call: SizedCall | None,
    ) -> _Match:
        with self._lock, no_collector():
            shape, dynamic = self._numbers.learn(structure, self._variants)
            key = (shape, *key[1:])
            if match := self._find_variant(key, dynamic, call):
                return match
            leaves = flatten((args, kwargs))[0]
            sized = call and self._traces.fitting(call.key(key), call.sizes, dynamic)
            if sized is None:
                before = self._variants.items() if call is None else self._traces.items()
                self._recompiles.tell(call.key(key) if call else key, dict(before), modules, self._numbers.remarks)
                check_static(structure)
                shape, dynamic, trace, position = self._traced(structure, args, kwargs, modules, call)
                key = (shape, *key[1:-1], key[-1] if position is None else position)
                if trace.numbers.is_empty and (match := self._find_variant(key, dynamic, call)):
                    return match
                if call is not None and not trace.traced.reads:
                    self._traces.add(call.key(key), trace)
                sized = trace, trace.numbers.traced_tensors()
            trace, numbers = sized
            leaves += numbers
            if trace.traced.reads:
                key = call.key(key, program=True) if call else key
                variant: Any = self._segmented(trace, structure, modules)
            else:
                variant, key = self._variant(key, trace, call, modules, leaves)
            # Programs with other frozen constants never fit again. Those that still hold serve different numbers.
            alone = self._weights.freeze and not any(v.holds() for v in self._variants.find(key))
            self._variants.add(key, variant, alone)
            if len([v for v in self._variants.find(key) if v.numbers.asks]) > MOST_ANSWERS:
                self._numbers.fix(trace.numbers.asks)
            self._log.info("%s: variant %d", self._name, len(self._variants))
            return variant, key, numbers

    def _segmented(self, first: SizedTrace, structure: Structure | int, modules: Modules) -> Segmented:
        """Return the programs of a trace that reads values of the call."""
        weights = self._weights
        options: dict[str, Any] = {"passes": self._passes, "machine": self._machine, "tier": self._tier}
        options |= {"first_nan": self.first_nan, "tune": self._tune and self._tune.left}

        def make(graph: Graph, tensors: Mapping[str, Tensor]) -> Compiled:
            return Compiled(GraphModule(graph, tensors), weights.precision, weights.freeze, **options)

        def path(trace: SizedTrace, before: Sequence[ProgramSegment] = ()) -> TracedPath:
            no_training(self._name, trace.traced)
            return TracedPath(trace.traced, trace.outside, before, make)

        def retrace(leaves: Sequence[Any], answers: Answers, before: Sequence[ProgramSegment]) -> TracedPath:
            args, kwargs = (leaves, {}) if isinstance(structure, int) else unflatten(structure, leaves)
            call = self._calls.of(structure, leaves)
            with self._lock:
                return path(self._traced(structure, tuple(args), kwargs, modules, call, answers)[2], before)

        places = ", ".join(read.place for read in first.traced.reads)
        self._log.info("%s has several programs a call, for it reads values: %s", self._name, places)
        return Segmented(self._name, path(first), retrace)

    def _variant(
        self, key: Any, trace: SizedTrace, call: SizedCall | None, modules: Modules, leaves: Sequence[Tensor]
    ) -> tuple[Variant, Any]:
        """Build a program and return it with its key.

        It serves all sizes of the named dimensions without a common size, or only those of the call where building for
        all of them fails.
        """

        def make(key: Any, specialized: Traced) -> Variant:
            variant = self._make(key, passed(specialized, self._first, self._machine), modules, leaves, trace.outside)
            variant.drawn, variant.numbers = trace.drawn, trace.numbers
            variant.holds()
            return variant

        return program_for(trace, call, key, make)

    def _make(self, key: Any, traced: Traced, modules: Modules, leaves: Sequence[Tensor], outside: Outside) -> Variant:
        """Compile a trace."""
        guarded = None
        if self.first_nan:
            traced, guarded = with_check(self._name, traced, self.first_nan)
        live = self._weights.live or any(v.is_thrashing for v in self._variants.find(key))
        weights, where = self._weights._replace(live=live), (self._machine, outside, self._tier)
        with searching(self._tune):
            variant = Variant(self._name, traced, modules, leaves, weights, self._pipeline, *where)
        if guarded is not None:
            variant.guarded = GuardedCalls(variant, guarded, self.first_nan, self._named_modules(), self._has_root)
        return variant

    def _named_modules(self) -> list[tuple[str, Any]]:
        """Return the modules of the function, with prefixes for the names of their tensors."""
        return modules_of(self._target)

    def _traced(
        self,
        structure: Structure | int,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        modules: Modules,
        call: SizedCall | None,
        answers: Answers | None = None,
    ) -> tuple[Any, DynamicValues, SizedTrace, Any]:
        """Trace the call. Return its structure, its dynamic numbers, the trace, and its random position.

        The position is None unless the call draws random numbers inside another module's call.
        """
        scope, position, after = module_path.scope(), None, {}
        first = None if scope is None else module_path.Scope(None, explicit=True)

        def trace(fresh: Fresh, inside: Any = first) -> Traced:
            def run(reads: ValueReads) -> Traced:
                sized = call.arguments() if call else {}  # each try has assumptions of its own
                options = {"scope": inside, "numbers": fresh(), "checks": bool(self.first_nan)}
                return trace_function(self._target, args, kwargs, guarded=True, value_reads=reads, **options, **sized)

            return traced_with_reads(run, answers)

        def trace_inside(fresh: Fresh) -> Traced:
            nonlocal after
            assert scope is not None
            inside = scope.continued()
            traced = trace(fresh, inside)
            after = drawn(inside)
            return traced

        result = self._numbers.traced(structure, trace)
        if draws(result[2].graph) or (first is not None and UNCERTAIN in first.memory):
            self._draws = True
            if scope is not None:
                self._recorder, position = None, self._random_position(scope)
                result = self._numbers.traced(structure, trace_inside)
        shape, dynamic, traced, inputs = result
        if traced.reads and not inputs.is_empty:
            self._numbers.fix(dict.fromkeys(inputs.sources, traced.reads[0].place))
            return self._traced(structure, args, kwargs, modules, call, answers)
        return shape, dynamic, SizedTrace(self._name, traced, Outside(traced, modules), inputs, after), position

    def traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Traced, Outside]:
        """Return a trace of a call, for which other arguments than tensors are constants, and the state of the world
        outside. Nothing is compiled."""
        args, kwargs, leaves, structure = self._flattened(args, kwargs)
        call = self._calls.of(structure, leaves)
        traced = trace_function(self._target, args, kwargs, guarded=True, **(call.arguments() if call else {}))
        return traced, Outside(traced, Modules(m for _, m in modules_of(self._target)))

    def _random_position(self, scope: module_path.Scope) -> tuple[Any, ...]:
        """Return the state that determines the random numbers of a call inside another module's call."""
        counts = [(id(key[0]), *sorted(generator_counts.items())) for key, generator_counts in drawn(scope).items()]
        module: Any = self._target if is_module(self._target) else None
        return (*scope.place_of(module), *sorted(counts))

    def plan(self, *args: Any, **kwargs: Any) -> Plan:
        """Return the cost of a call on these arguments: bytes of arena, constants, prepacked weights and code, and the
        estimated time.

        Compile the program where it does not exist yet, but run nothing. Raise the errors of a call before it runs, and
        ArgumentError inside a trace.

        Example:
            >>> import graphc as gc
            >>> double = gc.compile(lambda x: x * 2)
            >>> plan = double.plan(gc.zeros(8))
            >>> plan.arena, len(double.programs)
            (0, 1)
        """
        if runs_as_python():
            raise ArgumentError(
                "plan: no program exists inside a trace", remedy="call plan outside the traced function"
            )
        return self._in_a_tier(self._plan, args, kwargs)

    def _plan(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Plan:
        variant, _ = self._find_and_run(args, kwargs, only_find=True)
        trim()
        return variant.plan(flatten(self._calls.with_numbers(args, kwargs))[0])

    @property
    def programs(self) -> list[Plan]:
        """The plans of the programs held in memory. The most recently used one comes last.

        Example:
            >>> import graphc as gc
            >>> double = gc.compile(lambda x: x * 2)
            >>> y, z = double(gc.ones(2)), double(gc.ones(3))
            >>> len(double.programs)
            2
        """
        return self._in_a_tier(self._plans)

    def _plans(self) -> list[Plan]:
        ordered = sorted(self._variants, key=lambda v: (v is self._variants.last, v.used))
        return [plan for variant in ordered for plan in variant.plans]

    def memory_report(self) -> list[MemoryReport]:
        """Return the report of the memory budget for each program with gradients; no reports without a budget."""
        return [v.memory_report for v in self._variants if v.memory_report is not None]

    @property
    def variants(self) -> list[Variant]:
        """The programs held in memory, for each signature and each state of the world outside."""
        return list(self._variants)

    def __getattr__(self, name: str) -> Any:
        target = self.__dict__.get("_target")
        if target is None or name.startswith("__"):
            raise AttributeError(name)
        return getattr(target, name)

    def __reduce__(self) -> Any:
        # NOTE: the name of a decorated function refers to this object, so pickle can store the name.
        owner = sys.modules.get(getattr(self._target, "__module__", ""))
        name = getattr(self._target, "__qualname__", "")
        if functools.reduce(lambda value, attribute: getattr(value, attribute, None), name.split("."), owner) is self:
            return name
        weights = self._weights.precision, self._weights.freeze
        more = self._passes, self._machine, self._dims, self._memory, self.first_nan, self._tier
        return Compiled, (self._target, *weights, *more, self._tune and self._tune.seconds)

    def __repr__(self) -> str:
        return f"compiled({self._target!r})"


def compile(
    model: Any = None,
    *,
    precision: str | None = None,
    freeze: bool = False,
    passes: Sequence[Pass] = (),
    tensors: Mapping[str, Tensor] | None = None,
    target: str = HOST,
    device: Any = None,
    dims: Any = None,
    memory: int | str | None = None,
    strict_order: bool = False,
    flush_denormals: bool = False,
    first_nan: bool | str = False,
    tier: str | None = None,
    tune: float | None = None,
    **torch: Any,
) -> Any:
    """Compile a module, function or graph to native code; the result is called like ``model``.

    Without ``model``, return a decorator. docs/calls.md says when a call compiles again and what is kept between calls.

    Args:
        model: a Module, a function of tensors, or a graph of ``trace``. Parameters and buffers stay those of the model.
        precision: form of large weights: ``"bf16"``, ``"f16"``, ``"int8"``, ``"int4"``; ``"bf16_dot"``, ``"int8_dot"``,
            ``"int4_dot"`` also round the other factor. Not differentiable, but ``"bf16"`` works in a training function.
        freeze: make parameters and buffers that are only read constants. Not differentiable.
        passes: graph passes of your own, before the standard ones or after the one that they name (docs/extending.md).
        tensors: tensors by path for the params and states of a graph (default: ``graph.bound``).
        target: CPU: ``"host"``, or the name of another one (``"avx2"``, ``"neon-i8mm"``), as ``--target`` lists them.
        device: where to run: ``"cuda"``, ``"cuda:1"``, or ``"cuda-emu"`` (default: where the tensors are).
        dims: names of varying sizes, ``{"x": (gc.Dim("batch"), None)}``, by argument; ``"auto"`` finds them.
        memory: the most that a call keeps for its backward pass: bytes, ``"200MB"`` or ``"70%"`` (docs/memory.md).
        strict_order, flush_denormals: the same bits on every CPU; denormal numbers are zeros (docs/precision.md).
        first_nan: True raises at the op that makes the first NaN, before a call writes (docs/debugging.md).
        tier: ``"full"`` compiles first; ``"auto"`` runs first calls by NumPy meanwhile (docs/tiers.md).
        tune: seconds to search for a faster schedule before the first compile of a program (docs/cache.md).
        torch: arguments of ``torch.compile`` by name, such as ``dynamic`` or ``disable``.

    Returns:
        A callable with the arguments and results of ``model``; a graph takes one tensor or array per input.

    Raises:
        ArgumentError: an unknown precision or argument, or a param of a graph that has no tensor.
        CompileError, DeviceError: this machine lacks the instructions of ``target``, or the device.
        ShapeError, TraceError: in a call, sizes do not fit ``dims``; Python code asks for a value of the run.
        PassError, NonFiniteError: in a call, a pass changes inputs, outputs or states; ``first_nan`` found a NaN.

    Example:
        >>> import graphc as gc
        >>> area = gc.compile(lambda width, height: (width * height).sum())
        >>> area(gc.tensor([1.0, 2.0]), gc.tensor([3.0, 4.0]))
        tensor(11.)
    """
    freeze, dims, off = without_torch_arguments(freeze, dims, torch)
    options = {"precision": precision, "freeze": freeze, "passes": passes, "memory": memory, "first_nan": first_nan}
    tier = tier_named(tier if tune is None else tier_for_tuning(tune, tier, passes, strict_order))
    options |= {"machine": machine_named(target, device, strict_order, flush_denormals), "tier": tier, "tune": tune}
    make = (lambda f: f) if off else lambda f: _compiled(f, tensors, dims, options)
    return make if model is None else make(model)


def _compiled(f: Any, tensors: Mapping[str, Tensor] | None, dims: Any, options: Mapping[str, Any]) -> Any:
    """Compile a function or module; of a model with texts, its program."""
    parts = host_parts_of(f)
    if parts is None:
        f = as_callable(f, tensors) if tensors is not None or isinstance(f, Graph) else f
        return Compiled(f, dims=dims, **options)
    return CompiledParts(parts, Compiled(parts.program, dims=parts.dims(dims), **options))
