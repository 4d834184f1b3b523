"""A compile checked pass by pass: what each one leaves is interpreted and compared with what the graph means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from graphc.checks.check import are_close, difference, statements
from graphc.codegen.machine.target import Target, host_target
from graphc.compiler.pass_points import (
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
from graphc.compiler.stages import Stages
from graphc.compiler.wide import WideEvaluator
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import Evaluator, solved_sizes
from graphc.ir.graph.text import collect_data, print_graph
from graphc.passes.base import Pass
from graphc.passes.pipeline import PIPELINE

MOST_STATEMENTS = 2_000_000
"""Most statements that the kernel interpreter runs behind one program pass; larger programs are left out."""
ROUNDINGS = 8.0
"""How many times farther than the graph itself, in its own types, what a pass leaves may be from the graph in f64."""

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Fault:
    """Where a compile goes wrong first."""

    part: str
    """Of what is compiled: ``forward``, ``gradients``, ``step`` and so on."""
    point: Point
    what: str
    """How it is wrong."""
    node: str = ""
    """The first node, or kernel, whose value differs, with the line of the user."""
    graph: Graph | None = field(default=None, repr=False)
    """The graph on which the pass is wrong, and its arguments; few nodes where it was made small."""
    arguments: tuple[np.ndarray, ...] = field(default=(), repr=False)
    nodes: int = 0
    """How many nodes that graph has, without constants of one element."""
    path: Path | None = None
    """The file that shows it."""

    def __str__(self) -> str:
        lines = [f"{self.part}: {self.point.kind} pass {self.point.name}: {self.what}", *self.node.splitlines()]
        if self.path:
            lines.append(f"shown  {self.path} ({self.nodes} node{'s' if self.nodes != 1 else ''}): graphc check FILE")
        return "\n  ".join(lines)


@dataclass(frozen=True)
class PassLine:
    """One pass, compared with what the graph means."""

    part: str
    point: Point
    changed: int
    """How many nodes, kernels or calls the pass says it changed."""
    difference: float = 0.0
    """The largest absolute difference from the graph in f64."""
    good: bool = True
    note: str = ""
    """Why it was not compared, that it only inherits a difference, or how it failed."""
    compared: bool = True

    @property
    def is_idle(self) -> bool:
        """Whether it is a pass that found nothing to do, and changed no value either."""
        return self.good and self.compared and not self.changed and self.point.kind in (GRAPH, PROGRAM)

    @property
    def verdict(self) -> str:
        """One word, with the reason where there is one."""
        word = ("ok" if self.compared else "skipped") if self.good else "BAD"
        return f"{word}: {self.note}" if self.note else word


@dataclass(frozen=True)
class PassReport:
    """What ``check(passes=True)`` found: a line for each pass, and the first fault of each part."""

    lines: tuple[PassLine, ...]
    faults: tuple[Fault, ...] = ()

    @property
    def good(self) -> bool:
        """Whether no pass differs."""
        return not self.faults and all(line.good for line in self.lines)

    def __str__(self) -> str:
        rows = [("part", "pass", "changed", "difference", "verdict")]
        shown = [x for x in self.lines if not x.is_idle]
        rows += [(x.part, x.point.name, str(x.changed), _number(x), x.verdict) for x in shown]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        table = [
            f"{part:{widths[0]}}  {name:{widths[1]}}  {changed:>{widths[2]}}  {far:>{widths[3]}}  {verdict}".rstrip()
            for part, name, changed, far, verdict in rows
        ]
        idle = len(self.lines) - len(shown)
        rest = [f"{idle} passes changed nothing"] if idle else []
        return "\n".join([*table, *rest, *map(str, self.faults)])

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        lines = [
            {
                "part": x.part,
                "kind": x.point.kind,
                "pass": x.point.name,
                "changed": x.changed,
                "difference": x.difference if x.compared else None,
                "good": x.good,
                "note": x.note,
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
    """What a graph means for some arguments, and how far from that a result may be."""

    def __init__(self, graph: Graph, arguments: Sequence[np.ndarray]):
        evaluator = Evaluator()
        with np.errstate(all="ignore"):
            outputs = evaluator.run(graph, list(arguments))
        self.results: Results = [np.array(o) for o in outputs], {p: np.array(a) for p, a in evaluator.state.items()}
        wide = WideEvaluator(evaluator.values)
        outputs = wide.run(graph, list(arguments))
        self.wide: Results = [np.array(o) for o in outputs], dict(wide.state)

    def difference(self, found: Results) -> float:
        """The largest absolute difference from the graph in f64."""
        pairs = [*zip(found[0], self.wide[0], strict=True), *((found[1][p], a) for p, a in self.wide[1].items())]
        return max((difference(a, b)[0] for a, b in pairs), default=0.0)

    def wrong(self, found: Results) -> str:
        """The first output or state that is farther away than rounding allows; empty where none is. What is no float
        is the same bit for bit."""
        names = [f"output {i}" for i in range(len(self.results[0]))]
        for name, *arrays in zip(names, found[0], self.results[0], self.wide[0], strict=True):
            if not is_allowed(*arrays):
                return f"{name} differs by {difference(arrays[0], arrays[1])[0]:.3g}"
        for path, narrow in self.results[1].items():
            if not is_allowed(found[1][path], narrow, self.wide[1][path]):
                return f"the new {path!r} differs by {difference(found[1][path], narrow)[0]:.3g}"
        return ""


def is_allowed(found: np.ndarray, narrow: np.ndarray, wide: np.ndarray) -> bool:
    """Whether a result is as near to what the graph means in its own types as the usual tolerance asks, or to what it
    means in f64 as ROUNDINGS times the roundings of the graph itself."""
    if found.shape != narrow.shape or found.dtype != narrow.dtype:
        return False
    if narrow.dtype.kind != "f":
        return bool(np.array_equal(found, narrow))
    near = are_close(found, narrow)
    if near.all():
        return True
    finite = np.isfinite(narrow) & np.isfinite(wide)
    own = float(np.abs(narrow[finite].astype(np.float64) - wide[finite]).max(initial=0.0))
    with np.errstate(all="ignore"):
        apart = np.abs(found.astype(np.float64) - wide)
    return bool((near | (apart <= ROUNDINGS * own)).all())


@dataclass(frozen=True)
class Part:
    """One graph that is compiled, with the arguments of a call."""

    name: str
    graph: Graph
    arguments: tuple[np.ndarray, ...]
    passes: Sequence[Pass] = PIPELINE


def check_part(part: Part, target: Target | None = None, tell: Tell = lambda text: None) -> tuple[PassReport, Any]:
    """The lines of one part; with them the first fault as (point, graph before, what is wrong) or None."""
    checker = _PassChecker(part, target or host_target(), tell)
    checker.run()
    return PassReport(tuple(checker.lines)), checker.first


class _PassChecker:
    def __init__(self, part: Part, target: Target, tell: Tell):
        self.part, self.target, self.tell = part, target, tell
        self.arguments = [np.ascontiguousarray(a).reshape(np.shape(a)) for a in part.arguments]
        self.reference = Reference(part.graph, self.arguments)
        self.lines: list[PassLine] = []
        self.first: tuple[Point, Graph, str] | None = None
        """The first point at which it is wrong, the graph that its pass was given, and what is wrong."""
        self._last: tuple[str, float, str] = ("", 0.0, "")
        """Text, difference and fault of what was compared last."""

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
                found, changed = after_graph_pass(step, present, self.target)
            # NOTE: whatever a pass raises is how it fails.
            except Exception as error:
                self._failed(point, present, failure(error))
                return None
            text = graph_key(found)
            self._take(point, changed, present, text, lambda found=found: evaluated(found, self.arguments))
            present = found
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
        """Compares what a pass leaves, unless it is what was compared last."""
        known, far, wrong = self._last
        if text != known:
            try:
                found = run()
            # NOTE: so is whatever a program that it has made raises.
            except Exception as error:
                self._failed(point, before, failure(error))
                return
            far, wrong = self.reference.difference(found), self.reference.wrong(found)
            self._last = text, far, wrong
        note = ""
        if wrong:
            note = wrong if self.first is None else "as before"
            self.first = self.first or (point, before, wrong)
        self.lines.append(PassLine(self.part.name, point, changed, far, not wrong, note))

    def _failed(self, point: Point, before: Graph, what: str) -> None:
        self.first = self.first or (point, before, what)
        self.lines.append(PassLine(self.part.name, point, 0, inf, False, what))


def graph_key(graph: Graph) -> str:
    """A text that equal graphs have in common, and no others."""
    return print_graph(graph) + "".join(sorted(collect_data(graph)))


def joined(reports: Iterable[PassReport]) -> PassReport:
    """The report of several parts."""
    known = list(reports)
    lines = tuple(line for report in known for line in report.lines)
    return PassReport(lines, tuple(fault for report in known for fault in report.faults))
