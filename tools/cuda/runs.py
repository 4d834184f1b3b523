"""Cases compiled for a device, all of them before the first runs, and compared with native code of the CPU."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from graphc.base.difference import EXACT, Tolerance, difference, largest
from graphc.base.errors import GraphcError
from graphc.compiler import device as device_compiler
from graphc.compiler.compile import compile_graph, load_compiled
from graphc.ir.graph.graph import Graph, input_class, input_path
from tools.cuda.cases import Case
from tools.nets.run import DIFFERENT, EQUAL, FAILED, REFUSED

ROUNDING = {"float32": 2e-6, "float64": 4e-15}
"""Allowed difference of one op's results, relative to the largest element: a few units in the last place of each
type."""
ELEMENT = 8.0
"""Times that, relative to each element itself."""

REPEATS = 4
"""Repetitions of each call on a device; from the third one on a program may replay a recording of its launches."""

Results = list[np.ndarray]
"""Outputs, then written params and states in the order of the arguments."""
Tell = Callable[[str], None]


@dataclass(frozen=True)
class CaseOutcome:
    """Outcome of a case."""

    case: str
    kind: str
    detail: str = ""
    worst: float = 0.0
    """The largest difference of all results of a call, in units of the largest element of all."""


class Compiled:
    """A case and its program on a device, or the error raised instead."""

    def __init__(self, case: Case, name: str):
        self.case = case
        self.program: Any = None
        self.error: Exception | None = None
        try:
            self.program = device_compiler.compile_for_device(case.graph, name)
        except Exception as error:  # whatever a compile raises is an outcome of the case
            self.error = error

    def run(self, repeats: int = REPEATS) -> list[Results]:
        """Return the results of each call, each made several times: the last ones replay a recording."""
        calls = range(len(self.case.calls))
        return [run_program(self.program, self.case, i) for i in calls for _ in range(repeats)]


def compile_all(cases: Sequence[Case], name: str, tell: Tell = lambda _: None) -> list[Compiled]:
    """Return every case compiled for the device of that name, none of them run: the emulated device builds all at
    once."""
    compiled = []
    for case in cases:
        tell(case.name)
        compiled.append(Compiled(case, name))
    return compiled


def run_program(program: Any, case: Case, number: int) -> Results:
    """Return one call on copies of its arguments, of native code or on a device."""
    arguments = [np.array(a, order="C") for a in case.calls[number]]
    pairs = list(zip(case.graph.inputs, arguments, strict=True))
    inputs = [a for v, a in pairs if input_class(v) == "input"]
    by_path = {input_path(v): a for v, a in pairs if input_class(v) != "input"}
    sizes = case.sizes[number] if case.sizes else None
    outputs = program.run(inputs, tuple(by_path[spec.path] for spec in program.bound), None, sizes)
    return [np.array(as_numpy(o)) for o in outputs] + [by_path[path] for path in written(case.graph)]


def as_numpy(array: Any) -> np.ndarray:
    """Return an array of the device or of the host, on the host."""
    return array.get() if hasattr(array, "get") else np.asarray(array)


def written(graph: Graph) -> list[str]:
    """Return paths of the params and states that some node writes."""
    return [input_path(n.operands[0]) for n in graph.nodes() if n.op.name == "state_write"]


def expected(case: Case) -> list[Results]:
    """Return the results of native code of this machine in each call."""
    program = load_compiled(compile_graph(case.graph))
    return [run_program(program, case, i) for i in range(len(case.calls))]


def judge(compiled: Compiled) -> CaseOutcome:
    """Run a compiled case and compare it with the CPU."""
    name = compiled.case.name
    if compiled.error is not None:
        return _of_error(name, compiled.error)
    with np.errstate(all="ignore"):
        reference = expected(compiled.case)
        try:
            actual = compiled.run()
        except Exception as error:  # any exception of a device is an outcome
            return _of_error(name, error)
    repeated = [results for results in reference for _ in range(REPEATS)]
    return compare(name, actual, repeated, compiled.case.growth)


def judged(cases: Iterable[Compiled], tell: Tell = lambda _: None) -> Iterator[CaseOutcome]:
    """Yield the outcomes, one after the other."""
    for compiled in cases:
        tell(compiled.case.name)
        yield judge(compiled)


def _of_error(name: str, error: Exception) -> CaseOutcome:
    if isinstance(error, GraphcError) and type(error).__name__ == "UnsupportedError":
        return CaseOutcome(name, REFUSED, str(error), inf)
    lines = "".join(traceback.format_exception(error)[-3:])
    return CaseOutcome(name, FAILED, f"{type(error).__name__}: {error}\n{lines}", inf)


def compare(name: str, results: list[Results], reference: list[Results], growth: float) -> CaseOutcome:
    """Return the outcome for results of all calls, and by how much they differ."""
    worst = 0.0
    for call, (these, those) in enumerate(zip(results, reference, strict=True)):
        if len(these) != len(those):
            return CaseOutcome(name, DIFFERENT, f"call {call}: {len(these)} results, not {len(those)}", inf)
        scale = max([largest(b) for b in those if b.dtype.kind in "fc"], default=0.0) or 1.0
        for number, (a, b) in enumerate(zip(these, those, strict=True)):
            apart = difference(f"call {call}, result {number}", a, b, allowed(b, growth), same_dtype=True)
            worst = max(worst, apart.absolute / scale)
            if not apart.is_within:
                return CaseOutcome(name, DIFFERENT, str(apart), worst)
    return CaseOutcome(name, EQUAL, "", worst)


def allowed(reference: np.ndarray, growth: float) -> Tolerance:
    """Return the allowed rounding of results, relative to the largest element and to each element itself."""
    if reference.dtype.kind not in "fc":
        return EXACT
    unit = growth * ROUNDING.get(np.real(reference).dtype.name, 1e-2)
    return Tolerance(ELEMENT * unit, unit * max(1.0, largest(reference)))
