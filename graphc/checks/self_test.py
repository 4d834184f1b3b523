"""``selftest``: run the sample calls of a model file by each of its native codes and by code compiled here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from graphc.base.difference import EQUAL, Difference, combined, difference, tolerance_for
from graphc.base.records import dataclass
from graphc.calls.machine import HOST, machine_named
from graphc.files import model_content
from graphc.files.model_content import Artifact, Code, Sample
from graphc.models.model_file import LoadedModel, make_model
from graphc.models.model_programs import why_not_native

COMPILED = "compiled"
"""Name of the code compiled here."""


@dataclass(frozen=True)
class SelfTestCase:
    """All sample calls of one entry, run by one code."""

    entry: str
    code: str
    """``compiled``, or the processor and triple of code in the file."""
    calls: int
    """Number of sample calls run."""
    difference: Difference = EQUAL
    """The differences of all outputs of all calls as one."""
    skipped: str = ""
    """Reason why the code was not run."""

    @property
    def error(self) -> float:
        """The largest difference of an output relative to the tolerance: 1 is the limit."""
        return self.difference.ratio

    @property
    def absolute(self) -> float:
        """The largest difference."""
        return self.difference.absolute

    @property
    def relative(self) -> float:
        """The largest difference relative to the expected element."""
        return self.difference.relative

    @property
    def good(self) -> bool:
        """Whether no output differs by more than the tolerance; true for skipped code."""
        return self.difference.is_within

    def __str__(self) -> str:
        if self.skipped:
            return f"{self.entry:12} {self.code:32} not run: {self.skipped}"
        text = f"{self.calls} calls, largest error {self.error:.3g} of the tolerance, absolute {self.absolute:.3g}"
        return f"{self.entry:12} {self.code:32} {'ok ' if self.good else 'BAD'} {text}"


@dataclass(frozen=True)
class SelfTest:
    """The results of ``selftest``."""

    path: str
    cases: tuple[SelfTestCase, ...]

    @property
    def good(self) -> bool:
        """Whether some code was run, and no output differs by more than the tolerance."""
        return any(not c.skipped for c in self.cases) and all(c.good for c in self.cases)

    def __str__(self) -> str:
        return "\n".join(map(str, self.cases)) or f"{self.path} has no sample calls: export it with golden=True"


def selftest(
    path: str | os.PathLike[str],
    trust: bool = False,
    *,
    target: str = HOST,
    rtol: float | None = None,
    atol: float | None = None,
) -> SelfTest:
    """Run the sample calls that ``export(..., golden=True)`` has stored in a model file.

    Each entry runs as compiled for this machine (or for ``target``), and with ``trust`` by each object code in the file
    that runs here. Each call starts with the states of the file.

    Tolerances are as for ``check``: 1e-4 of an element and 1e-5 of the largest one for f32, 1e-9 and 1e-11 for f64,
    none for integers; ``rtol`` and ``atol`` replace them. Raise what ``load`` raises.

    Example:
        >>> import graphc as gc
        >>> manifest = gc.export(lambda x: x * 2, gc.zeros(3), path="double.gcm", golden=2)
        >>> gc.selftest("double.gcm").good
        True
    """
    machine = machine_named(target, None)
    stored = model_content.load(path)
    cases = []
    if any(entry.golden for entry in stored.entries):
        cases += _run(make_model(stored, machine), stored, COMPILED, rtol, atol)
        cases += [case for code in _codes(stored) for case in _of_code(stored, code, trust, rtol, atol)]
    return SelfTest(os.fspath(path), tuple(cases))


def _codes(stored: Artifact) -> list[str]:
    """Return the names of the machines for which the file has code."""
    return list(dict.fromkeys(_name(code) for entry in stored.entries for code in entry.natives))


def _name(code: Code) -> str:
    target = code.manifest.target
    return f"{target.cpu or 'generic'} {target.triple}" + (" in strict order" if target.strict_order else "")


def _of_code(
    stored: Artifact, name: str, trust: bool, rtol: float | None, atol: float | None
) -> Iterator[SelfTestCase]:
    """Yield the cases of the code for one machine."""
    only = [replace(e, natives=tuple(c for c in e.natives if _name(c) == name)) for e in stored.entries]
    natives = {e.spec.name: e.natives for e in only}
    having = [e for e in only if e.golden and all(natives[program] for program in e.spec.programs)]
    reason = "" if trust else "code of the file runs only with trust=True"
    for entry in having:
        reason = reason or why_not_native(natives[entry.spec.programs[0]][0])
    if reason:
        yield from (SelfTestCase(e.spec.name, name, 0, skipped=reason) for e in having)
        return
    subset = replace(stored, entries=tuple(only))
    model = make_model(subset, HOST, trust=True)
    yield from (c for c in _run(model, subset, name, rtol, atol) if c.entry in {e.spec.name for e in having})


def _run(
    model: LoadedModel, stored: Artifact, code: str, rtol: float | None, atol: float | None
) -> Iterator[SelfTestCase]:
    for entry in stored.entries:
        if not entry.golden:
            continue
        calls = [_difference(model, entry.spec.name, sample, rtol, atol) for sample in entry.golden]
        yield SelfTestCase(entry.spec.name, code, len(calls), combined(calls))


def _difference(model: LoadedModel, entry: str, sample: Sample, rtol: float | None, atol: float | None) -> Difference:
    """Return the differences of all outputs of a call from the stored ones."""
    model.reset_state()
    outputs = map(np.asarray, model.entry(entry).run(sample.inputs))
    names = [spec.name for spec in model.entry(entry).outputs]
    return combined(
        difference(name, output, expected, tolerance_for(output, expected, rtol, atol))
        for name, output, expected in zip(names, outputs, sample.outputs, strict=True)
    )
