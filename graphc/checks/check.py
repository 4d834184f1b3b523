"""Every stage of a compile against the numpy meaning of the graph, with the first bad node named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod
from typing import Any

import numpy as np

from graphc.base.dtypes import layout_of, numbers
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
"""Most statements that the kernel interpreter runs; it is skipped for larger programs."""
TOLERANCE = {"f64": (1e-9, 1e-11), "f32": (1e-4, 1e-5), "f16": (4e-3, 1e-6), "bf16": (3e-2, 1e-6)}
"""(relative, absolute) differences that are allowed by default, of narrow floats four steps; none for integers."""

ROUNDED = {"bf16_dot": 4e-3, "int8_dot": 2e-2, "int4_dot": 2e-2}
"""Relative and absolute differences that are allowed where what products multiply is rounded in every stage: sums that
differ in their last bits may go to neighbouring steps."""

Results = tuple[list[np.ndarray], dict[str, np.ndarray]]
"""Outputs, and the new content of each written param and state by path."""


@dataclass(frozen=True)
class StageReport:
    """One stage compared with the meaning of the traced graph."""

    stage: str
    max_absolute: float
    max_relative: float
    """Largest difference divided by the magnitude of the expected element (not counting those near zero)."""
    good: bool
    bad: str = ""
    """Where it is not good: the first node whose value differs, and the user's line."""
    skipped: str = ""
    """Why the stage was not compared, or empty."""

    def __str__(self) -> str:
        if self.skipped:
            return f"{self.stage:10} skipped: {self.skipped}"
        state = "ok " if self.good else "BAD"
        text = f"{self.stage:10} {state} max absolute {self.max_absolute:.3g}, max relative {self.max_relative:.3g}"
        return text + "".join(f"\n  {line}" for line in self.bad.splitlines())


@dataclass(frozen=True)
class PrecisionReport:
    """What narrow weights cost."""

    precision: str
    weights: int
    """How many are stored narrow."""
    saved: int
    """By how many bytes they are smaller."""
    max_absolute: float
    """The largest difference of an output from that with the weights as they were."""
    max_relative: float
    """The same in units of the largest magnitude of that output."""

    def __str__(self) -> str:
        size = f"{self.weights} weights, {self.saved:,} bytes less"
        return (
            f"{self.precision:10} {size}: max absolute {self.max_absolute:.3g}, {self.max_relative:.3g} of the largest"
        )


@dataclass(frozen=True)
class Report:
    """What ``check_graph`` found, one entry per stage."""

    stages: tuple[StageReport, ...]
    precision: PrecisionReport | None = None
    """How far a model with narrow weights is from the one that was given; no part of ``good``."""

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
    """Runs the optimized graph, the lowered and scheduled kernels (when they are small) and the native code on
    ``arguments``, one array per input of the graph, which are not changed, and compares outputs and written states with
    those of the traced graph. Raises ArgumentError for arguments that do not fit.
    """
    _check_arguments(graph, arguments)
    return _Checker(graph, arguments, rtol, atol, target).run()


def check_native(graph: Graph, arguments: Sequence[np.ndarray]) -> StageReport:
    """``check_graph`` for the native code alone, without a search for the node. Raises ArgumentError."""
    _check_arguments(graph, arguments)
    checker = _Checker(graph, arguments, None, None, None)
    return checker.compare("native", checker.run_native(checker.stages, ""), lambda: "")


def _check_arguments(graph: Graph, arguments: Sequence[np.ndarray]) -> None:
    given = [(a.dtype, a.shape) for a in map(np.asarray, arguments)]
    sizes = solved_sizes(graph, arguments)
    wanted = [(v.dtype.numpy, bound_sizes(v.shape, sizes)) for v in graph.inputs]
    if given != wanted:
        raise ArgumentError(
            f"@{graph.name} takes {', '.join(str(v.type) for v in graph.inputs)}",
            remedy=f"not {', '.join(f'{d}{list(s)}' for d, s in given)}",
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
    """``check_graph`` for a graph with its params and states (by path) frozen and its weights stored narrow, and how
    far its outputs are from those with the weights as they are. Raises ArgumentError."""
    narrowed = freeze_narrow(graph, state, precision, costs=host_target().costs)
    expected, found = (_outputs(g, state, inputs) for g in (graph, narrowed.graph))
    allowed = ROUNDED.get(precision)
    rtol, atol = (allowed if given is None else given for given in (rtol, atol))
    report = check_graph(narrowed.graph, graph_arguments(narrowed.graph, state, inputs), rtol=rtol, atol=atol)
    absolute = [difference(a, b)[0] for a, b in zip(found, expected, strict=True)]
    relative = [a / (_scale(b) or 1.0) for a, b in zip(absolute, expected, strict=True)]
    worst = (max(errors, default=0.0) for errors in (absolute, relative))
    return replace(report, precision=PrecisionReport(precision, narrowed.count, narrowed.saved, *worst))


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
        """Those of named dimensions in this call."""

    def run(self) -> Report:
        stages = self.stages
        reports = [self.compare("optimized", _interpret(stages.optimized, self.arguments), self.bad_by_name)]
        for stage in ("lowered", "scheduled"):
            cost = statements(self.program_at(stages, stage))
            if cost > KERNEL_LIMIT:
                reason = f"about {cost:,} statements, at most {KERNEL_LIMIT:,} are interpreted"
                reports.append(StageReport(stage, 0.0, 0.0, True, skipped=reason))
                continue
            reports.append(self.compare(stage, self.run_kernels(stages, stage), self.probe(self.run_kernels, stage)))
        native = self.compare("native", self.run_native(stages, ""), self.probe(self.run_native, ""))
        return Report((*reports, native))

    # ---- running

    def run_kernels(self, stages: Stages, stage: str) -> Results:
        """A program by the kernel interpreter."""
        arguments = [a.copy() for a in self.arguments]
        outputs = run_program(self.program_at(stages, stage), arguments)
        return list(outputs), _changed(stages.optimized, arguments)

    def program_at(self, stages: Stages, stage: str) -> Program:
        """The program of a stage for the sizes of this call."""
        program = getattr(stages, stage)
        names = dims_of_program(program)
        return bind_program(program, {n: self.sizes[n] for n in names}) if names else program

    def run_native(self, stages: Stages, _: str) -> Results:
        """Native code."""
        program = load_compiled(compile_stages(stages))
        arguments = dict(zip(stages.optimized.inputs, (a.copy() for a in self.arguments), strict=True))
        inputs = [a for v, a in arguments.items() if input_class(v) == "input"]
        bound = tuple(a for v, a in arguments.items() if input_class(v) != "input")
        return program.run(inputs, bound), _changed(stages.optimized, list(arguments.values()))

    # ---- comparing

    def close(self, found: np.ndarray, expected: np.ndarray) -> bool:
        """Whether no element differs by more than is allowed."""
        return found.shape == expected.shape and bool(are_close(found, expected, self.rtol, self.atol).all())

    def compare(self, stage: str, found: Results, name_bad: Callable[[], str]) -> StageReport:
        """The report of one stage; ``name_bad`` is asked where to look when it differs."""
        pairs = list(zip(found[0], self.expected[0], strict=True))
        pairs += [(found[1][path], array) for path, array in self.expected[1].items()]
        differences = [difference(*pair) for pair in pairs]
        good = all(self.close(*pair) for pair in pairs)
        absolute, relative = (max((d[i] for d in differences), default=0.0) for i in range(2))
        return StageReport(stage, absolute, relative, good, "" if good else name_bad())

    # ---- finding the first bad node

    def bad_by_name(self) -> str:
        """The first value of the optimized graph that differs from that of the same name in the traced one."""
        traced, optimized = Evaluator(), Evaluator()
        traced.run(self.stages.traced, self.arguments)
        optimized.run(self.stages.optimized, self.arguments)
        known = {v.name: (v, a) for v, a in traced.values.items()}
        for node in self.stages.optimized.nodes():
            for value in node.results:
                before = known.get(value.name)
                if before and before[0].type == value.type and not self.close(optimized.values[value], before[1]):
                    return _describe(node)
        return "no node that kept its name differs"

    def probe(self, run: Callable[[Stages, str], Results], stage: str) -> Callable[[], str]:
        """Runs the optimized graph with every value as an output; names the first that differs."""

        def find() -> str:
            every = _EveryValue()
            graph = every.transform(self.stages.optimized)
            values = Evaluator()
            values.run(self.stages.optimized, self.arguments)
            found = run(Stages(graph, target=self.stages.target), stage)[0]
            for value, array in zip(every.computed, found, strict=True):
                if not self.close(array, np.asarray(values.values[value])):
                    return _describe(value.node)
            return "every node by itself is right: the fault lies in how they are fused"

        return find


class _EveryValue(Reemitter):
    """Copies a graph and returns every value that a node computes."""

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


def _describe(node: Node) -> str:
    origin = node.location.describe()
    return f"where  {print_node(node)}" + (f"\nfrom   {origin}" if origin else "")


def _scale(array: np.ndarray) -> float:
    if array.dtype.kind not in "fc":
        return 0.0
    return float(np.abs(array[np.isfinite(array)]).max(initial=0.0))


def are_close(
    found: np.ndarray, expected: np.ndarray, rtol: float | None = None, atol: float | None = None
) -> np.ndarray:
    """Which elements differ by no more than is allowed, TOLERANCE by default; the absolute difference in units of the
    largest element beyond 1."""
    relative, absolute = TOLERANCE.get(_real_name(expected), (0.0, 0.0))
    rtol, atol = relative if rtol is None else rtol, absolute if atol is None else atol
    found, expected = numbers(found), numbers(expected)
    return np.isclose(found, expected, rtol=rtol, atol=atol * max(1.0, _scale(expected)), equal_nan=True)


def allowed_difference(expected: np.ndarray, rtol: float | None = None, atol: float | None = None) -> np.ndarray:
    """By how much each element may differ, as ``are_close`` sees it."""
    relative, absolute = TOLERANCE.get(_real_name(expected), (0.0, 0.0))
    rtol, atol = relative if rtol is None else rtol, absolute if atol is None else atol
    expected = numbers(expected)
    return rtol * np.abs(expected).astype(np.float64) + atol * max(1.0, _scale(expected))


def _real_name(array: np.ndarray) -> str:
    """The element type, of complex numbers that of their parts."""
    return layout_of(array.dtype).real.name


def difference(found: np.ndarray, expected: np.ndarray) -> tuple[float, float]:
    """(largest absolute, largest relative) difference of two arrays; infinite where one is NaN and the other not."""
    if found.shape != expected.shape:
        return inf, inf
    found, expected = numbers(found), numbers(expected)
    wide = np.complex128 if "c" in (found.dtype.kind, expected.dtype.kind) else np.float64
    a, b = found.astype(wide), expected.astype(wide)
    with np.errstate(all="ignore"):
        apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
        apart = np.where(np.isnan(apart), inf, apart)
        floor = max(1e-6 * _scale(b), np.finfo(np.float64).tiny)
        relative = np.where(apart == 0, 0.0, apart / np.maximum(np.abs(b), floor))
    return float(apart.max(initial=0.0)), float(np.where(np.isnan(relative), inf, relative).max(initial=0.0))


def statements(program: Program) -> int:
    """About how many statements a run of a program executes."""
    kernels = {k.name: k for k in program.kernels}
    return sum(c.runs * _kernel_statements(kernels[c.kernel].body) for c in program.calls)


def _kernel_statements(body: Any) -> int:
    return sum(prod(loop.axis.extent for loop in loops) for stmt, loops in walk(body) if not isinstance(stmt, Loop))
