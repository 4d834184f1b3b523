"""Comparison of every stage of a compilation with the reference interpreter, which names the first wrong node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from graphc.base.difference import EQUAL, Difference, combined, difference, largest, tolerance_for
from graphc.base.errors import ArgumentError
from graphc.codegen.machine.target import Target, host_target
from graphc.compiler.compile import compile_stages, load_compiled
from graphc.compiler.freeze import freeze_narrow, graph_arguments
from graphc.compiler.stages import Stages
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value, input_class, input_path
from graphc.ir.graph.interpret import Evaluator, Reemitter, bound_sizes, solved_sizes
from graphc.ir.graph.text import print_node
from graphc.ir.kernel.dims import bind as bind_program
from graphc.ir.kernel.dims import dims_of_program
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.statements import Loop, Program, walk
from graphc.ir.op import Trait

KERNEL_LIMIT = 20_000_000
"""Limit on statements for the kernel interpreter; larger programs are skipped."""
ROUNDED = {"bf16_dot": 4e-3, "int8_dot": 2e-2, "int4_dot": 2e-2}
"""Relative tolerance, and absolute one as a fraction of the largest output, where every stage rounds factors of
products: sums with other last bits may round to neighbouring quantized values."""

Results = tuple[list[np.ndarray], dict[str, np.ndarray]]
"""Outputs, and the new content of each written param and state by path."""


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
        return f"{self.precision:10} {size}: max absolute {self.max_absolute:.3g}, {self.of_largest:.3g} of the largest"


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
    return checker.compare("native", checker.run_native(checker.stages, ""), lambda: "")


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
    """Check a graph with frozen params and states (by path) and narrow weights, and measure the error of its outputs.

    See ``check_graph``. Raise ArgumentError.
    """
    narrowed = freeze_narrow(graph, state, precision, costs=host_target().costs)
    expected, narrow_outputs = (_outputs(g, state, inputs) for g in (graph, narrowed.graph))
    if precision in ROUNDED:
        rtol = ROUNDED[precision] if rtol is None else rtol
        atol = ROUNDED[precision] * max(1.0, *map(largest, narrow_outputs)) if atol is None else atol
    report = check_graph(narrowed.graph, graph_arguments(narrowed.graph, state, inputs), rtol=rtol, atol=atol)
    differences = [
        difference(f"output {i}", *pair) for i, pair in enumerate(zip(narrow_outputs, expected, strict=True))
    ]
    shares = [d.absolute / (largest(array) or 1.0) for d, array in zip(differences, expected, strict=True)]
    errors = combined(differences), max(shares, default=0.0)
    return replace(report, precision=PrecisionReport(precision, narrowed.count, narrowed.saved, *errors))


def _outputs(graph: Graph, state: Mapping[str, np.ndarray], inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    return _interpret(graph, graph_arguments(graph, state, inputs))[0]


class _Checker:
    def __init__(self, graph: Graph, arguments: Sequence[np.ndarray], rtol: Any, atol: Any, target: Target | None):
        self.stages = Stages(graph, target=target)
        self.arguments = [np.ascontiguousarray(a).reshape(np.shape(a)) for a in arguments]
        self.rtol = rtol
        self.atol = atol
        self.expected = _interpret(graph, self.arguments)
        self.sizes = {d.name: n for d, n in solved_sizes(graph, arguments).items()}
        """Sizes of named dimensions in this call."""

    def run(self) -> Report:
        stages = self.stages
        reports = [self.compare("optimized", _interpret(stages.optimized, self.arguments), self.bad_by_name)]
        for stage in ("lowered", "scheduled"):
            cost = statements(self.program_at(stages, stage))
            if cost > KERNEL_LIMIT:
                reason = f"about {cost:,} statements, at most {KERNEL_LIMIT:,} are interpreted"
                reports.append(StageReport(stage, skipped=reason))
                continue
            reports.append(self.compare(stage, self.run_kernels(stages, stage), self.probe(self.run_kernels, stage)))
        native = self.compare("native", self.run_native(stages, ""), self.probe(self.run_native, ""))
        return Report((*reports, native))

    # ---- running

    def run_kernels(self, stages: Stages, stage: str) -> Results:
        """Run a program by the kernel interpreter."""
        arguments = [a.copy() for a in self.arguments]
        outputs = run_program(self.program_at(stages, stage), arguments)
        return list(outputs), _changed(stages.optimized, arguments)

    def program_at(self, stages: Stages, stage: str) -> Program:
        """Return the program of a stage for the sizes of this call."""
        program = getattr(stages, stage)
        names = dims_of_program(program)
        return bind_program(program, {n: self.sizes[n] for n in names}) if names else program

    def run_native(self, stages: Stages, _: str) -> Results:
        """Run native code."""
        program = load_compiled(compile_stages(stages))
        arguments = dict(zip(stages.optimized.inputs, (a.copy() for a in self.arguments), strict=True))
        inputs = [a for v, a in arguments.items() if input_class(v) == "input"]
        bound = tuple(a for v, a in arguments.items() if input_class(v) != "input")
        return program.run(inputs, bound), _changed(stages.optimized, list(arguments.values()))

    # ---- comparing

    def difference(self, name: str, actual: np.ndarray, expected: np.ndarray) -> Difference:
        """Return the difference of two arrays, with the tolerance of this check."""
        tolerance = tolerance_for(actual, expected, self.rtol, self.atol)
        return difference(name, actual, expected, tolerance, same_dtype=True)

    def compare(self, stage: str, results: Results, name_bad: Callable[[], str]) -> StageReport:
        """Return the report of one stage. If it differs, call ``name_bad`` to locate the fault."""
        pairs = [(f"output {i}", *pair) for i, pair in enumerate(zip(results[0], self.expected[0], strict=True))]
        pairs += [(path, results[1][path], array) for path, array in self.expected[1].items()]
        total = combined(self.difference(*pair) for pair in pairs)
        return StageReport(stage, total, "" if total.is_within else name_bad())

    # ---- finding the first bad node

    def bad_by_name(self) -> str:
        """Describe the first value of the optimized graph that differs from the traced value of the same name."""
        traced, optimized = Evaluator(), Evaluator()
        traced.run(self.stages.traced, self.arguments)
        optimized.run(self.stages.optimized, self.arguments)
        traced_values = {v.name: (v, a) for v, a in traced.values.items()}
        for node in self.stages.optimized.nodes():
            for value in node.results:
                before = traced_values.get(value.name)
                if before is None or before[0].type != value.type:
                    continue
                if not self.difference(
                    value.name, np.asarray(optimized.values[value]), np.asarray(before[1])
                ).is_within:
                    return described(node)
        return "no node with an unchanged name differs"

    def probe(self, run: Callable[[Stages, str], Results], stage: str) -> Callable[[], str]:
        """Return a function that runs the optimized graph with every value as an output, and describes the first wrong
        one.
        """

        def find() -> str:
            every = _EveryValue()
            graph = every.transform(self.stages.optimized)
            values = Evaluator()
            values.run(self.stages.optimized, self.arguments)
            arrays = run(Stages(graph, target=self.stages.target), stage)[0]
            for value, array in zip(every.computed, arrays, strict=True):
                if not self.difference(value.name, array, np.asarray(values.values[value])).is_within:
                    return described(value.node)
            return "every node by itself is right: the fault is in their fusion"

        return find


class _EveryValue(Reemitter):
    """Copies a graph and returns every computed value."""

    def transform(self, graph: Graph) -> Graph:
        result = super().transform(graph)
        plain = [n for n in graph.nodes() if n.op is not CONSTANT and not n.op.has(Trait.EFFECT)]
        self.computed: list[Value] = [v for n in plain for v in n.results]
        result.set_outputs([self.values[v] for v in self.computed])
        return result


def _interpret(graph: Graph, arguments: Sequence[np.ndarray]) -> Results:
    evaluator = Evaluator()
    outputs = evaluator.run(graph, arguments)
    return [np.array(o) for o in outputs], {path: np.array(a) for path, a in evaluator.state.items()}


def _changed(graph: Graph, arguments: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    return {input_path(v): a for v, a in zip(graph.inputs, arguments, strict=True) if input_class(v) != "input"}


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
