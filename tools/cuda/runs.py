"""Cases compiled for a device, all of them before the first runs, and compared with native code of the CPU."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from graphc.base.errors import GraphcError
from graphc.compiler import device as device_compiler
from graphc.compiler.compile import compile_graph, load_compiled
from graphc.ir.graph.graph import Graph, input_class, input_path
from tools.cuda.cases import Case

EQUAL, DIFFERENT, FAILED, REFUSED = "equal", "different", "failed", "refused"
"""Outcomes of a case: the CPU's numbers; others; an error that none should raise; a typed error says why not."""
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
            if (a.dtype, a.shape) != (b.dtype, b.shape):
                what = f"{a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}"
                return CaseOutcome(name, DIFFERENT, f"call {call}, result {number} is {what}", inf)
            worst = max(worst, apart(a, b) / scale)
            if not distance_of(a, b) <= growth:
                return CaseOutcome(name, DIFFERENT, f"call {call}, result {number}: {_first(a, b)}", worst)
    return CaseOutcome(name, EQUAL, "", worst)


def distance_of(result: np.ndarray, reference: np.ndarray) -> float:
    """Return the largest difference in units of the allowed rounding: at most 1 where both are equal up to that."""
    result, reference = _parts(result), _parts(reference)
    if result.dtype.kind != "f":
        return 0.0 if np.array_equal(result, reference) else inf
    a, b = result.astype(np.float64), reference.astype(np.float64)
    unit = ROUNDING.get(reference.dtype.name, 1e-2)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        apart = np.where(same, 0.0, np.abs(a - b))
        scale = largest(b)
        allowed = unit * np.maximum(max(scale, 1.0), ELEMENT * np.abs(np.where(np.isfinite(b), b, 0.0)))
        ratio = np.where(np.isfinite(apart), apart / allowed, inf)
    return float(ratio.max(initial=0.0))


def _parts(array: np.ndarray) -> np.ndarray:
    """Return the real and imaginary parts of complex numbers in an additional dimension, packed elements (pairs of
    bf16, quads of int8) as unsigned integers, and other arrays unchanged."""
    if array.dtype.kind == "V":
        return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    return np.stack([np.real(array), np.imag(array)], -1) if array.dtype.kind == "c" else array


def largest(array: np.ndarray) -> float:
    """Return the magnitude of the largest finite element."""
    return float(np.abs(array[np.isfinite(array)]).max(initial=0.0))


def apart(result: np.ndarray, reference: np.ndarray) -> float:
    """Return the largest difference of elements that are finite in both."""
    result, reference = _parts(result), _parts(reference)
    both = np.isfinite(result) & np.isfinite(reference)
    return float(np.abs(result[both].astype(np.float64) - reference[both].astype(np.float64)).max(initial=0.0))


def _first(result: np.ndarray, reference: np.ndarray) -> str:
    """Return the element that differs most."""
    if result.size == 0:
        return "no elements"
    result, reference = _parts(result), _parts(reference)
    with np.errstate(all="ignore"):
        apart = np.abs(result.astype(np.float64) - reference.astype(np.float64))
    apart = np.where(
        np.isnan(apart) & ~(np.isnan(result.astype(float)) & np.isnan(reference.astype(float))), inf, apart
    )
    where = np.unravel_index(int(np.nanargmax(np.where(np.isnan(apart), 0.0, apart))), result.shape)
    index = ", ".join(str(int(i)) for i in where)
    return f"element [{index}] is {result[where]!r}, not {reference[where]!r}; {int((apart > 0).sum())} differ"
