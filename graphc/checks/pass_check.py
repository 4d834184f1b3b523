"""Check of a compilation pass by pass: interpret the result of each and compare it with the original graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from graphc.base.difference import EQUAL, Difference, Tolerance, are_close, combined, difference
from graphc.base.records import dataclass
from graphc.checks.check import pairs, statements
from graphc.checks.pass_points import (
    GRAPH,
    NATIVE,
    PROGRAM,
    Point,
    Results,
    after_graph_pass,
    evaluated,
    failure,
    program_runner,
    program_stops,
    run_native,
)
from graphc.checks.wide import WideEvaluator
from graphc.codegen.machine.target import Target, host_target
from graphc.compiler.stages import Stages
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import Evaluator, solved_sizes
from graphc.ir.graph.text import collect_data, print_graph
from graphc.passes.base import Pass
from graphc.passes.pipeline import PIPELINE

MOST_STATEMENTS = 2_000_000
"""Limit on statements for the kernel interpreter after one program pass; larger programs are skipped."""
ROUNDINGS = 8.0
"""Limit on a result's distance from the graph in f64, as a multiple of the graph's own rounding error."""

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Fault:
    """The first fault of a compilation."""

    part: str
    """The compiled graph: ``forward``, ``gradients``, ``step`` and so on."""
    point: Point
    what: str
    """Description of the error."""
    node: str = ""
    """The first node, or kernel, with another value, and the user's line."""
    graph: Graph | None = field(default=None, repr=False)
    """A graph on which the pass is wrong; a small one after reduction. Its arguments follow."""
    arguments: tuple[np.ndarray, ...] = field(default=(), repr=False)
    nodes: int = 0
    """Number of nodes of that graph, without constants of one element."""
    path: Path | None = None
    """The file that reproduces it."""

    def __str__(self) -> str:
        lines = [f"{self.part}: {self.point.kind} pass {self.point.name}: {self.what}", *self.node.splitlines()]
        if self.path:
            lines.append(f"run    graphc check {self.path} ({self.nodes} node{'s' if self.nodes != 1 else ''})")
        return "\n  ".join(lines)


@dataclass(frozen=True)
class PassLine:
    """One pass, compared with the original graph."""

    part: str
    point: Point
    changed: int
    """Number of changed nodes, kernels or calls, as reported by the pass."""
    from_graph: Difference = EQUAL
    """The difference from the graph in f64, of all outputs and states as one."""
    good: bool = True
    note: str = ""
    """Reason why it was not compared, a note that it only inherits a difference, or its error."""
    compared: bool = True

    @property
    def difference(self) -> float:
        """The largest absolute difference from the graph in f64."""
        return self.from_graph.absolute

    @property
    def is_idle(self) -> bool:
        """Whether the pass had nothing to do, and changed no value either."""
        return self.good and self.compared and not self.changed and self.point.kind in (GRAPH, PROGRAM)

    @property
    def verdict(self) -> str:
        """One word, with the reason where one exists."""
        word = ("ok" if self.compared else "skipped") if self.good else "BAD"
        return f"{word}: {self.note}" if self.note else word


@dataclass(frozen=True)
class PassReport:
    """The results of ``check(passes=True)``: a line for each pass, and the first fault of each part."""

    lines: tuple[PassLine, ...]
    faults: tuple[Fault, ...] = ()

    @property
    def good(self) -> bool:
        """Whether no pass differs."""
        return not self.faults and all(line.good for line in self.lines)

    def __str__(self) -> str:
        rows = [("part", "pass", "changed", "difference", "verdict")]
        active = [x for x in self.lines if not x.is_idle]
        rows += [(x.part, x.point.name, str(x.changed), _number(x), x.verdict) for x in active]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        table = [
            f"{label:{widths[0]}}  {name:{widths[1]}}  {changed:>{widths[2]}}  {far:>{widths[3]}}  {verdict}".rstrip()
            for label, name, changed, far, verdict in rows
        ]
        idle = len(self.lines) - len(active)
        rest = [f"{idle} passes changed nothing"] if idle else []
        return "\n".join([*table, *rest, *map(str, self.faults)])

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        lines = [
            {
                "part": x.part,
                "kind": x.point.kind,
                "pass": x.point.name,
                "changed": x.changed,
                "difference": x.difference if x.compared else None,
                "good": x.good,
                "note": x.note,
                **x.from_graph.as_json(),
            }
            for x in self.lines
        ]
        faults = [
            {
                "part": f.part,
                "kind": f.point.kind,
                "pass": f.point.name,
                "what": f.what,
                "node": f.node,
                "nodes": f.nodes,
                "file": str(f.path) if f.path else None,
            }
            for f in self.faults
        ]
        return {"good": self.good, "passes": lines, "faults": faults}


def _number(line: PassLine) -> str:
    return f"{line.difference:.3g}" if line.compared and line.difference < inf else "-"


class Reference:
    """The expected results of a graph for some arguments, with tolerances."""

    def __init__(self, graph: Graph, arguments: Sequence[np.ndarray]):
        evaluator = Evaluator()
        with np.errstate(all="ignore"):
            outputs = evaluator.run(graph, list(arguments))
        self.results: Results = [np.array(o) for o in outputs], {p: np.array(a) for p, a in evaluator.state.items()}
        wide = WideEvaluator(evaluator.values)
        outputs = wide.run(graph, list(arguments))
        self.wide: Results = [np.array(o) for o in outputs], dict(wide.state)

    def difference(self, results: Results) -> Difference:
        """Return the difference from the graph in f64, of all outputs and states as one."""
        return combined(difference(*pair) for pair in pairs(results, self.wide))

    def wrong(self, results: Results) -> str:
        """Describe the first output or state with an error beyond rounding; empty where all are right.

        Values other than floats must match bit for bit.
        """
        for (name, actual, narrow), (_, _, wide) in zip(
            pairs(results, self.results), pairs(results, self.wide), strict=True
        ):
            if not is_allowed(actual, narrow, wide):
                return f"{name} differs by {difference(name, actual, narrow).absolute:.3g}"
        return ""


def is_allowed(actual: np.ndarray, narrow: np.ndarray, wide: np.ndarray) -> bool:
    """Return whether a result is within tolerance.

    It may be near the graph in its own types by the usual tolerance, or near the graph in f64 by ROUNDINGS times the
    graph's own rounding error.
    """
    if actual.shape != narrow.shape or actual.dtype != narrow.dtype:
        return False
    if narrow.dtype.kind != "f":
        return bool(np.array_equal(actual, narrow))
    near = are_close(actual, narrow)
    if near.all():
        return True
    finite = np.isfinite(narrow) & np.isfinite(wide)
    own = difference("", narrow[finite], wide[finite]).absolute
    return bool((near | are_close(actual, wide, Tolerance(0.0, ROUNDINGS * own))).all())


@dataclass(frozen=True)
class CheckedGraph:
    """One compiled graph, with the arguments of a call."""

    name: str
    graph: Graph
    arguments: tuple[np.ndarray, ...]
    passes: Sequence[Pass] = PIPELINE


def check_part(
    checked_part: CheckedGraph, target: Target | None = None, tell: Tell = lambda text: None
) -> tuple[PassReport, Any]:
    """Return the lines of one part and its first fault, as (point, graph before, description) or None."""
    checker = _PassChecker(checked_part, target or host_target(), tell)
    checker.run()
    return PassReport(tuple(checker.lines)), checker.first


class _PassChecker:
    def __init__(self, checked_part: CheckedGraph, target: Target, tell: Tell):
        self.part, self.target, self.tell = checked_part, target, tell
        self.arguments = [np.ascontiguousarray(a).reshape(np.shape(a)) for a in checked_part.arguments]
        self.reference = Reference(checked_part.graph, self.arguments)
        self.lines: list[PassLine] = []
        self.first: tuple[Point, Graph, str] | None = None
        """The first wrong point, the graph before its pass, and a description."""
        self._last: tuple[str, Difference, str] = ("", EQUAL, "")
        """Text, difference and fault of the last comparison."""

    def run(self) -> None:
        optimized = self._graph_passes()
        if optimized is None:
            return
        stages = Stages(optimized, target=self.target, passes=())
        if self._program_passes(stages, optimized):
            point = Point(NATIVE, 0, NATIVE)
            self.tell("native code")
            self._take(point, 0, optimized, "native", lambda: run_native(stages, self.arguments))

    def _graph_passes(self) -> Graph | None:
        present = self.part.graph
        for number, step in enumerate(self.part.passes):
            point = Point(GRAPH, number, step.name)
            self.tell(f"after {point}")
            try:
                result, changed = after_graph_pass(step, present, self.target)
            # NOTE: any exception of a pass is its failure.
            except Exception as error:
                self._failed(point, present, failure(error))
                return None
            text = graph_key(result)
            self._take(point, changed, present, text, lambda result=result: evaluated(result, self.arguments))
            present = result
        return present

    def _program_passes(self, stages: Stages, optimized: Graph) -> bool:
        sizes = {d.name: n for d, n in solved_sizes(optimized, self.arguments).items()}
        run = program_runner(stages, sizes)
        for stop in program_stops(stages):
            point, program = stop.point, stop.program
            self.tell(f"after {point}")
            if program is None:
                self._failed(point, optimized, stop.text)
                return False
            cost = statements(program) if not sizes else 0
            if cost > MOST_STATEMENTS:
                note = f"about {cost:,} statements, at most {MOST_STATEMENTS:,} are interpreted"
                self.lines.append(PassLine(self.part.name, point, stop.changed, note=note, compared=False))
                continue
            self._take(point, stop.changed, optimized, stop.text, lambda program=program: run(program, self.arguments))
        return True

    def _take(self, point: Point, changed: int, before: Graph, text: str, run: Callable[[], Results]) -> None:
        """Compare the result of a pass, unless it equals the last compared one."""
        last_text, far, wrong = self._last
        if text != last_text:
            try:
                results = run()
            # NOTE: any exception of the resulting program is a failure too.
            except Exception as error:
                self._failed(point, before, failure(error))
                return
            far, wrong = self.reference.difference(results), self.reference.wrong(results)
            self._last = text, far, wrong
        note = ""
        if wrong:
            note = wrong if self.first is None else "as before"
            self.first = self.first or (point, before, wrong)
        self.lines.append(PassLine(self.part.name, point, changed, far, not wrong, note))

    def _failed(self, point: Point, before: Graph, what: str) -> None:
        self.first = self.first or (point, before, what)
        failed = Difference(problem=what, absolute=inf, relative=inf, ratio=inf)
        self.lines.append(PassLine(self.part.name, point, 0, failed, False, what))


def graph_key(graph: Graph) -> str:
    """Return a text with which exactly equal graphs agree."""
    return print_graph(graph) + "".join(sorted(collect_data(graph)))


def joined(reports: Iterable[PassReport]) -> PassReport:
    """Return the report of several parts."""
    report_list = list(reports)
    lines = tuple(line for report in report_list for line in report.lines)
    return PassReport(lines, tuple(fault for report in report_list for fault in report.faults))
