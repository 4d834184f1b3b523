"""Budgets: counted figures of compiled programs that must not rise unnoticed; nothing is timed.

``python -m tools.budgets`` compares the figures of all benchmark models with ``tests/end_to_end/budgets.json`` and
exits 1 where one differs; ``--write --reason "..."`` records the new figures with the reason for the change.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypedDict

import llvmlite

from benchmarks.first_call import own_calls
from benchmarks.harness.process import call_in_child
from benchmarks.workloads import WORKLOADS
from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.forms import Forms
from graphc.codegen.schedule.pipeline import estimate
from graphc.compiler.stages import Stages
from graphc.tracing.trace import no_collector
from tools.cases import workload_graph
from tools.digests import names_of

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "tests" / "end_to_end" / "budgets.json"
TARGET = "avx512"
"""The machine that models are compiled for: its facts are fixed, so that every machine counts the same."""
IMPORT = "import"
CODE = "code_bytes"
"""The one figure that depends on LLVM too."""
CALLS = "python_calls"
SLACK = {CALLS: 0.03}
"""Fraction by which a figure may differ from the record, so that not every change of the code is one of figures."""

Figures = dict[str, int]
"""Counts by figure name."""


class Change(TypedDict):
    """A figure that became another one."""

    model: str
    figure: str
    value: int
    reason: str


class Record(TypedDict):
    """Recorded figures at a commit, and every change since."""

    commit: str
    llvmlite: str
    """Version with which code was measured."""
    figures: dict[str, Figures]
    changes: list[Change]


def model_figures(name: str) -> Figures:
    """Return the figures of a benchmark model, frozen or as a training step:

    ``kernels``, ``arena_bytes``, ``cycles`` (the schedule's own estimate), ``code_bytes`` (of the object),
    ``packed_bytes`` (constants that were put into another order), ``llvm_lines``, and ``python_calls``: of functions of
    graphc, from the traced graph to LLVM's text. What earlier models left in memory changes these.
    """
    target = target_named(TARGET)
    stages = Stages(workload_graph(WORKLOADS[name]), target=target, tuned={})
    profile = cProfile.Profile(builtins=False)
    with no_collector(), profile:
        prepacking = stages.prepacking
        texts = [program.llvm for program in (stages, prepacking) if program is not None]
    lowered, scheduled = stages.lowered, stages.scheduled
    constants = {s.name for s in lowered.storages if s.cls == "constant"}
    packed = [s for s in scheduled.storages if s.cls == "constant" and s.name not in constants]
    return {
        "kernels": len(scheduled.kernels),
        "arena_bytes": scheduled.arena,
        "cycles": round(estimate(lowered, Forms(target))),
        CODE: len(stages.object),
        "packed_bytes": sum(s.nbytes for s in packed),
        "llvm_lines": sum(text.count("\n") for text in texts),
        CALLS: own_calls(profile),
    }


def import_figures() -> Figures:
    """Count the modules of graphc that ``import graphc`` loads, and the packages of others."""
    code = "import graphc, sys; print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    modules = done.stdout.split()
    bare = subprocess.run([sys.executable, "-c", "import sys; print(*sys.modules)"], stdout=subprocess.PIPE, text=True)
    before = {name.partition(".")[0] for name in bare.stdout.split()} | set(sys.stdlib_module_names)
    others = {name.partition(".")[0] for name in modules if not name.startswith("_sysconfigdata")} - before
    return {
        "graphc_modules": sum(name.partition(".")[0] == "graphc" for name in modules),
        "other_packages": len(others - {"graphc"}),
    }


def measure(name: str) -> Figures:
    """Return the figures of a model, counted in a process of its own, or of IMPORT."""
    if name == IMPORT:
        return import_figures()
    environment = {**os.environ, "GRAPHC_CACHE": "off", "GRAPHC_PROGRESS": "off", "PYTHONHASHSEED": "0"}
    figures = call_in_child("tools.budgets:model_figures", environment, 3600.0, name=name)
    if "error" in figures:
        raise RuntimeError(f"{name}: {figures['error']}")
    return figures


def read(path: Path = FILE) -> Record:
    """Read the record from its file."""
    return json.loads(path.read_text(encoding="utf-8"))


def allowed(record: Record, name: str) -> Figures:
    """Return the figures that the record allows a model now."""
    figures = dict(record["figures"].get(name, {}))
    figures.update({c["figure"]: c["value"] for c in record["changes"] if c["model"] == name})
    return figures


def comparable(record: Record, figures: Figures) -> Figures:
    """Return the figures; leave out code sizes if another LLVM produced the recorded ones."""
    if record["llvmlite"] == llvmlite.__version__:
        return figures
    return {figure: value for figure, value in figures.items() if figure != CODE}


def differences(record: Record, name: str, figures: Figures) -> list[str]:
    """Return one line for each figure of a model that differs from the record."""
    limits = allowed(record, name)
    lines = []
    for figure, value in comparable(record, figures).items():
        limit = limits.get(figure)
        if limit is None:
            lines.append(f"{name}: {figure} is {value} and not recorded")
        elif abs(value - limit) > limit * SLACK.get(figure, 0.0):
            lines.append(f"{name}: {figure} {'rose' if value > limit else 'fell'} from {limit} to {value}")
    return lines


def recorded(record: Record, name: str, figures: Figures, reason: str) -> Record:
    """Return the record with the new figures of models that changed."""
    limits = allowed(record, name)
    changes: list[Change] = [
        {"model": name, "figure": figure, "value": value, "reason": reason}
        for figure, value in comparable(record, figures).items()
        if figure not in limits or abs(value - limits[figure]) > limits[figure] * SLACK.get(figure, 0.0)
    ]
    return {**record, "changes": [*record["changes"], *changes]}


def write(record: Record, path: Path = FILE) -> None:
    """Store the record, one model or change a line."""
    models = _lines(f"{json.dumps(name)}: {json.dumps(figures)}" for name, figures in record["figures"].items())
    changes = _lines(json.dumps(change) for change in record["changes"])
    head = f'"commit": {json.dumps(record["commit"])},\n "llvmlite": {json.dumps(record["llvmlite"])}'
    text = f'{{\n {head},\n "figures": {{{models}}},\n "changes": [{changes}]\n}}\n'
    assert json.loads(text) == record
    path.write_text(text, encoding="utf-8")


def _lines(items: Iterable[str]) -> str:
    text = ",\n".join(f"  {item}" for item in items)
    return f"\n{text}\n " if text else ""


def main(argv: Sequence[str] | None = None) -> int:
    """Compare or record; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.budgets", description=(__doc__ or "").partition("\n")[0])
    names = [IMPORT, *WORKLOADS]
    parser.add_argument(
        "--models", type=names_of(names), default=names, metavar="A,B", help="names of models, or import (default: all)"
    )
    parser.add_argument("--write", action="store_true", help="record the figures that differ")
    parser.add_argument("--reason", default="", help="reason for the change, in one line")
    parser.add_argument("--json", action="store_true", help="print the figures without comparing them")
    options = parser.parse_args(argv)
    if options.write and not options.reason.strip():
        parser.error("a new figure needs a line of reason: --reason TEXT")
    os.environ.update(GRAPHC_CACHE="off", GRAPHC_PROGRESS="off")
    if options.json:
        print(json.dumps({name: measure(name) for name in options.models}, indent=1))
        return 0
    return _compare(options.models, options.reason.strip() if options.write else "")


def _compare(models: Sequence[str], reason: str) -> int:
    record: Any = read()
    lines: list[str] = []
    for name in models:
        figures = measure(name)
        lines += differences(record, name, figures)
        record = recorded(record, name, figures, reason)
    print("\n".join([*lines, f"{len(models)} models, {len(lines)} figures differ"]))
    if reason:
        write(record)
        return 0
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
