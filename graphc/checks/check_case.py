"""A fault as two files: the text of a small graph with the line that runs it, and its arrays in an .npz file."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from graphc.base.difference import difference
from graphc.base.errors import ArgumentError, ArtifactError, ParseError
from graphc.base.lazy import deferred
from graphc.base.records import dataclass
from graphc.checks.gradient_rules import wrong_rule
from graphc.checks.pass_check import Fault
from graphc.checks.pass_faults import Wrong, wrong_at
from graphc.checks.pass_points import GRAPH, Point, evaluated
from graphc.checks.reduce import fault_of
from graphc.codegen.machine.target import host_target
from graphc.compiler.cache import versions
from graphc.files.container import replacing
from graphc.files.numpy_file import read_npz, write_npz
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import collect_data, print_graph
from graphc.passes.base import Pass
from graphc.passes.pipeline import PIPELINE

MARK = "// graphc case 2"
"""First line of the text."""
_EARLIER_MARK = "// graphc check case 1"
GRADIENT, COMPILE, OPERATOR = "gradient", "compile", "operator"
"""Kinds of points besides those of passes: gradient rules; the whole compilation, and native code where there are
arguments; the rule of an operator of PyTorch."""

operator_fault = deferred("graphc.interop.aten.sample:operator_fault")


@dataclass(frozen=True)
class CheckCase:
    """The content of the two files."""

    point: Point
    graph: Graph
    """Empty for an operator."""
    arguments: tuple[np.ndarray, ...]
    expected: tuple[np.ndarray, ...]
    """Outputs of the graph when the files were written; results of PyTorch for an operator."""
    what: str = ""
    """The error at that time."""
    operator: str = ""
    """The application of an operator, as text."""

    def fault(self, passes: Sequence[Pass] = PIPELINE) -> str:
        """Return what is wrong now; empty where nothing is.

        ``passes`` are searched for a user's pass. Raise ArgumentError where the pass does not exist.
        """
        if self.point.kind == OPERATOR:
            return operator_fault(self.operator, self.arguments, self.expected)
        if self.expected:
            outputs = evaluated(self.graph, self.arguments)[0]
            for i, (output, expected) in enumerate(zip(outputs, self.expected, strict=True)):
                if not difference("", output, expected).is_within:
                    return f"output {i} of the graph itself differs from its value when the file was written"
        return wrong_by(self.point, passes)(self.graph, self.arguments)


def wrong_by(point: Point, passes: Sequence[Pass] = PIPELINE) -> Wrong:
    """Return a test that describes how the pass at a point is wrong on a graph and arguments."""
    if point.kind == GRADIENT:
        return wrong_rule
    if point.kind == COMPILE:
        return lambda graph, arguments: fault.what if (fault := fault_of(graph, arguments or None)) else ""
    if point.kind == GRAPH and all(p.name != point.name for p in passes):
        raise ArgumentError(
            f"there is no graph pass {point.name!r} here", remedy="pass your own passes too, in which the fault was"
        )
    return wrong_at(point, passes)


def write_case(
    fault: Fault,
    folder: str | os.PathLike[str] | None = None,
    expected: Sequence[np.ndarray] | None = None,
    operator: str = "",
) -> Path:
    """Write a fault to two new files and return the path of the text, which ``graphc check`` runs.

    Args:
        fault: a fault with its graph.
        folder: created if necessary (default: a new temporary folder).
        expected: results that are right (default: the outputs of the graph).
        operator: the application of an operator that takes the place of a graph.

    Raises:
        OSError: a file cannot be written.
    """
    assert fault.graph is not None
    directory = Path(folder or tempfile.mkdtemp(prefix="graphc_report_"))
    directory.mkdir(parents=True, exist_ok=True)
    stem = "".join(c if c.isalnum() else "_" for c in f"{fault.part}_{fault.point.name}")[:60]
    path, number = directory / f"{stem}.gc", 1
    while path.exists():
        number += 1
        path = directory / f"{stem}_{number}.gc"
    if expected is None:
        expected = evaluated(fault.graph, fault.arguments)[0]
    lists = {"argument": fault.arguments, "expected": expected}
    arrays = {f"{name}_{i}": array for name, values in lists.items() for i, array in enumerate(values)}
    write_npz(path.with_suffix(".npz"), {**collect_data(fault.graph), **arrays})
    with replacing(path) as file:
        file.write(_text(fault, path.name, operator).encode())
    return path


def _text(fault: Fault, name: str, operator: str) -> str:
    """Return comment lines with the case, then the text of the graph."""
    assert fault.graph is not None
    point = fault.point
    head = {"kind": point.kind, "pass": point.name, "number": point.number, "part": fault.part, "what": fault.what}
    built_by = ", ".join(f"{package} {version}" for package, version in sorted(versions().items()))
    lines = [f"with {built_by}, for {host_target().cpu}", *fault.node.splitlines(), f"run: graphc check {name}"]
    comments = [f"// {line}" for line in (f"case {json.dumps({**head, 'operator': operator})}", *lines)]
    return "\n".join([MARK, *comments, "", print_graph(fault.graph)])


def is_case(path: str | os.PathLike[str]) -> bool:
    """Check whether ``write_case`` wrote a file, now or in an earlier format."""
    file_path = Path(path)
    if file_path.suffix != ".gc" or not file_path.is_file():
        return False
    with file_path.open("rb") as file:
        return file.readline(64).strip() in (MARK.encode(), _EARLIER_MARK.encode())


def load_case(path: str | os.PathLike[str]) -> CheckCase:
    """Read a fault that a check wrote. Raise ArtifactError for any other content, and FileNotFoundError."""
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    if text.startswith(_EARLIER_MARK):
        raise ArtifactError(f"{os.fspath(path)} is a case of an earlier format", remedy="run the check again")
    if not text.startswith(MARK):
        raise ArtifactError(
            f"{os.fspath(path)} is not a case of graphc check", remedy=f"pass a file that begins with {MARK!r}"
        )
    arrays = read_npz(Path(path).with_suffix(".npz"), narrow=True)
    try:
        line = next(line for line in text.splitlines() if line.startswith("// case "))
        head = json.loads(line.removeprefix("// case "))
        point = Point(head["kind"], int(head["number"]), head["pass"])
        arguments, expected = (tuple(_numbered(arrays, name)) for name in ("argument", "expected"))
        return CheckCase(point, parse_graph(text, arrays), arguments, expected, head["what"], head["operator"])
    except (ValueError, KeyError, TypeError, StopIteration, ParseError) as error:
        raise ArtifactError(f"{os.fspath(path)} is damaged: {error}") from error


def _numbered(arrays: Mapping[str, np.ndarray], name: str) -> list[np.ndarray]:
    """Return the arrays ``name_0``, ``name_1`` and so on."""
    count = sum(key.startswith(f"{name}_") for key in arrays)
    return [np.array(arrays[f"{name}_{i}"]) for i in range(count)]
