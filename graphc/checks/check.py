"""Comparison of every stage of a compilation with the reference interpreter, which names the first wrong node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import isnan, prod
from typing import Any

import numpy as np

from graphc.base.difference import EQUAL, Difference, combined, difference, largest, tolerance_for
from graphc.base.errors import ArgumentError
from graphc.base.records import dataclass
from graphc.checks.pass_points import Results, bound_program, evaluated, program_runner, run_native
from graphc.checks.weight_noise import WeightNoise, table, weight_noise
from graphc.codegen.machine.target import Target, host_target
from graphc.compiler.freeze import freeze, graph_arguments
from graphc.compiler.stages import Stages
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value
from graphc.ir.graph.interpret import Evaluator, Reemitter, bound_sizes, solved_sizes
from graphc.ir.graph.text import print_node
from graphc.ir.kernel.statements import Loop, Program, walk
from graphc.ir.op import Trait
from graphc.passes.base import STANDARD
from graphc.passes.pipeline import optimize
from graphc.passes.precision import check_precision, narrow_with_images

KERNEL_LIMIT = 20_000_000
"""Limit on statements for the kernel interpreter; larger programs are skipped."""
ROUNDED = {"bf16_dot": 4e-3, "int8_dot": 2e-2, "int4_dot": 2e-2}
"""Relative tolerance, and absolute one as a fraction of the largest output, where every stage rounds factors of
products: sums with other last bits may round to neighbouring quantized values."""


@dataclass(frozen=True)
class StageReport:
    """Comparison of one stage with the traced graph."""

    stage: str
    difference: Difference = EQUAL
    """The differences of all outputs and written states as one."""
    bad: str = ""
    """For a wrong stage: the first node with another value, and the user's line."""
    skipped: str = ""
    """Reason why the stage was not compared, or empty."""

    @property
    def max_absolute(self) -> float:
        """The largest difference of an element."""
        return self.difference.absolute

    @property
    def max_relative(self) -> float:
        """The largest difference relative to the expected element."""
        return self.difference.relative

    @property
    def good(self) -> bool:
        """Whether no element differs by more than the tolerance; true for skipped stages."""
        return self.difference.is_within

    def __str__(self) -> str:
        if self.skipped:
            return f"{self.stage:10} skipped: {self.skipped}"
        state = "ok " if self.good else "BAD"
        text = f"{self.stage:10} {state} max absolute {self.max_absolute:.3g}, max relative {self.max_relative:.3g}"
        lines = [] if self.good else [str(self.difference), *self.bad.splitlines()]
        return "\n  ".join([f"{text}, {self.difference.ratio:.3g} of the tolerance", *lines])


@dataclass(frozen=True)
class PrecisionReport:
    """The error of narrow weights."""

    precision: str
    weights: int
    """Number of narrow weights."""
    saved: int
    """Bytes saved by narrow storage."""
    difference: Difference
    """The differences of all outputs from those with full weights, as one."""
    of_largest: float
    """The largest absolute difference of an output, as a fraction of its largest magnitude."""
    layers: tuple[WeightNoise, ...] = ()
    """The error of each layer by itself: those with narrow weights in the order of the model, then the layers of
    ``gc.quantize``."""
    full_accuracy: float | None = None
    """Result of ``accuracy`` for the model with full weights; NaN for layers of ``gc.quantize`` without them. None
    without ``accuracy``."""
    accuracy: float | None = None
    """Result of ``accuracy`` for the model with narrow weights, or None."""

    @property
    def max_absolute(self) -> float:
        """The largest difference of an element."""
        return self.difference.absolute

    @property
    def max_relative(self) -> float:
        """The largest difference relative to the element with full weights."""
        return self.difference.relative

    def __str__(self) -> str:
        size = f"{self.weights} weights, {self.saved:,} bytes less"
        head = f"{self.precision:10} {size}: max absolute {self.max_absolute:.3g}, {self.of_largest:.3g} of the largest"
        lines = [head, *table(self.layers).splitlines()]
        if self.accuracy is not None and self.full_accuracy is not None:
            full = "no full weights" if isnan(self.full_accuracy) else f"{self.full_accuracy:.6g} with full weights"
            lines.append(f"accuracy {self.accuracy:.6g} with {self.precision}, {full}")
        return "\n  ".join(lines)


class ChecksItself:
    """Base class of what ``gc.check`` compares with the model that it was made of."""

    def check(self, *examples: Any, rtol: float | None = None, atol: float | None = None) -> Report:
        """Return the differences."""
        raise NotImplementedError


@dataclass(frozen=True)
class Report:
    """The results of ``check_graph``, one entry per stage."""

    stages: tuple[StageReport, ...]
    precision: PrecisionReport | None = None
    """Error of a model with narrow weights; does not affect ``good``."""

    @property
    def good(self) -> bool:
        """Whether no stage differs."""
        return all(s.good for s in self.stages)

    def __str__(self) -> str:
        return "\n".join(map(str, (*self.stages, *([self.precision] if self.precision else []))))


def check_graph(
    graph: Graph,
    arguments: Sequence[np.ndarray],
    *,
    rtol: float | None = None,
    atol: float | None = None,
    target: Target | None = None,
) -> Report:
    """Compare outputs and written states of each stage with the traced graph.

    The stages are the optimized graph, the lowered and scheduled kernels (if small) and the native code. They run on
    ``arguments``, one array per input of the graph, which are not changed. Raise ArgumentError for wrong arguments.
    """
    _check_arguments(graph, arguments)
    return _Checker(graph, arguments, rtol, atol, target).run()


def check_native(graph: Graph, arguments: Sequence[np.ndarray]) -> StageReport:
    """Check only the native code, without a search for the wrong node; see ``check_graph``. Raise ArgumentError."""
    _check_arguments(graph, arguments)
    checker = _Checker(graph, arguments, None, None, None)
    return checker.compare("native", checker.run_stage(checker.stages, "native"), lambda: "")


def _check_arguments(graph: Graph, arguments: Sequence[np.ndarray]) -> None:
    actual = [(a.dtype, a.shape) for a in map(np.asarray, arguments)]
    sizes = solved_sizes(graph, arguments)
    expected = [(v.dtype.numpy, bound_sizes(v.shape, sizes)) for v in graph.inputs]
    if actual != expected:
        raise ArgumentError(
            f"@{graph.name} takes {', '.join(str(v.type) for v in graph.inputs)}",
            remedy=f"pass arrays of these types, not {', '.join(f'{d}{list(s)}' for d, s in actual)}",
        )


def check_narrow(
    graph: Graph,
    state: Mapping[str, np.ndarray],
    inputs: Sequence[np.ndarray],
    precision: str,
    *,
    rtol: float | None = None,
    atol: float | None = None,
) -> Report:
    """Check a graph with frozen params and states (by path) and narrow weights, and measure the error of its outputs
    and of its layers.

    See ``check_graph``. Raise ArgumentError.
    """
    check_precision(precision)
    full = optimize(freeze(graph, state), STANDARD, host_target().costs)
    narrowed, images = narrow_with_images(full, precision)
    exact = Evaluator()
    with np.errstate(all="ignore"):
        expected = [np.array(output) for output in exact.run(full, graph_arguments(full, state, inputs))]
    arguments = graph_arguments(narrowed.graph, state, inputs)
    narrow_outputs, _ = evaluated(narrowed.graph, arguments)
    layers = weight_noise(narrowed, images, exact.values, arguments, state)
    if precision in ROUNDED:
        rtol = ROUNDED[precision] if rtol is None else rtol
        atol = ROUNDED[precision] * max(1.0, *map(largest, narrow_outputs)) if atol is None else atol
    report = check_graph(narrowed.graph, arguments, rtol=rtol, atol=atol)
    differences = [
        difference(f"output {i}", *pair) for i, pair in enumerate(zip(narrow_outputs, expected, strict=True))
    ]
    shares = [d.absolute / (largest(array) or 1.0) for d, array in zip(differences, expected, strict=True)]
    errors = combined(differences), max(shares, default=0.0)
    return replace(report, precision=PrecisionReport(precision, narrowed.count, narrowed.saved, *errors, layers))


class _Checker:
    def __init__(self, graph: Graph, arguments: Sequence[np.ndarray], rtol: Any, atol: Any, target: Target | None):
        self.stages = Stages(graph, target=target)
        self.arguments = [np.ascontiguousarray(a).reshape(np.shape(a)) for a in arguments]
        self.rtol = rtol
        self.atol = atol
        self.expected = evaluated(graph, self.arguments)
        self.sizes = {d.name: n for d, n in solved_sizes(graph, arguments).items()}
        """Sizes of named dimensions in this call."""

    def run(self) -> Report:
        stages = self.stages
        reports = [self.compare("optimized", evaluated(stages.optimized, self.arguments), self.bad_by_name)]
        for stage in ("lowered", "scheduled", "native"):
            cost = 0 if stage == "native" else statements(bound_program(getattr(stages, stage), self.sizes))
            if cost > KERNEL_LIMIT:
                reason = f"about {cost:,} statements, at most {KERNEL_LIMIT:,} are interpreted"
                reports.append(StageReport(stage, skipped=reason))
            else:
                reports.append(self.compare(stage, self.run_stage(stages, stage), partial(self.probe, stage)))
        return Report(tuple(reports))

    def run_stage(self, stages: Stages, stage: str) -> Results:
        """Run native code, or the program of a stage by the kernel interpreter."""
        if stage == "native":
            return run_native(stages, self.arguments)
        return program_runner(stages, self.sizes)(getattr(stages, stage), self.arguments)

    def is_near(self, actual: Any, expected: Any) -> bool:
        """Check whether two arrays are equal up to the tolerance of this check."""
        return self.difference("", np.asarray(actual), np.asarray(expected)).is_within

    def difference(self, name: str, actual: np.ndarray, expected: np.ndarray) -> Difference:
        """Return the difference of two arrays, with the tolerance of this check."""
        tolerance = tolerance_for(actual, expected, self.rtol, self.atol)
        return difference(name, actual, expected, tolerance, same_dtype=True)

    def compare(self, stage: str, results: Results, name_bad: Callable[[], str]) -> StageReport:
        """Return the report of one stage. If it differs, call ``name_bad`` to locate the fault."""
        total = combined(self.difference(*pair) for pair in pairs(results, self.expected))
        return StageReport(stage, total, "" if total.is_within else name_bad())

    def bad_by_name(self) -> str:
        """Describe the first node of the optimized graph with another value than the traced node of the same name."""
        stages = self.stages
        node = first_difference(stages.traced, stages.optimized, self.arguments, self.is_near)
        return described(node) or "no node with an unchanged name differs"

    def probe(self, stage: str) -> str:
        """Run a stage of the optimized graph with every value as an output, and describe the first wrong one."""
        every = _EveryValue()
        graph = every.transform(self.stages.optimized)
        values = Evaluator()
        values.run(self.stages.optimized, self.arguments)
        arrays = self.run_stage(Stages(graph, target=self.stages.target), stage)[0]
        for value, array in zip(every.computed, arrays, strict=True):
            if not self.is_near(array, values.values[value]):
                return described(value.node)
        return "every node by itself is right: the fault is in their fusion"


class _EveryValue(Reemitter):
    """Copies a graph and returns every computed value."""

    def transform(self, graph: Graph) -> Graph:
        result = super().transform(graph)
        plain = [n for n in graph.nodes() if n.op is not CONSTANT and not n.op.has(Trait.EFFECT)]
        self.computed: list[Value] = [v for n in plain for v in n.results]
        result.set_outputs([self.values[v] for v in self.computed])
        return result


def pairs(results: Results, expected: Results) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield the name of each output and written state, with its array in both results."""
    for i, arrays in enumerate(zip(results[0], expected[0], strict=True)):
        yield f"output {i}", *arrays
    for path, array in expected[1].items():
        yield f"the new {path!r}", results[1][path], array


def first_difference(
    before: Graph, after: Graph, arguments: Sequence[np.ndarray], is_near: Callable[[Any, Any], bool]
) -> Node | None:
    """Return the first node of a graph after a pass whose value differs from that of the same name before it."""
    first, second = Evaluator(), Evaluator()
    first.run(before, list(arguments))
    second.run(after, list(arguments))
    values = {v.name: (v.type, a) for v, a in first.values.items()}
    for node in after.nodes():
        for value in node.results:
            known_type, array = values.get(value.name, (None, None))
            if known_type == value.type and not is_near(second.values[value], array):
                return node
    return None


def described(node: Node | None) -> str:
    """Return a node as text, and the user's line."""
    if node is None:
        return ""
    origin = node.location.describe()
    return f"where  {print_node(node)}" + (f"\nfrom   {origin}" if origin else "")


def statements(program: Program) -> int:
    """Estimate the number of statements executed by a run of a program."""
    kernels = {k.name: k for k in program.kernels}
    return sum(c.runs * _kernel_statements(kernels[c.kernel].body) for c in program.calls)


def _kernel_statements(body: Any) -> int:
    return sum(prod(loop.axis.extent for loop in loops) for stmt, loops in walk(body) if not isinstance(stmt, Loop))
