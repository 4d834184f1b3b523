"""A fault of the compiler as a file: the text of a small graph, its arguments, the pass, and the expected outputs."""

from __future__ import annotations

import base64
import json
import math
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, ArtifactError, ParseError
from graphc.checks.gradient_rules import wrong_rule
from graphc.checks.pass_check import Fault
from graphc.checks.pass_faults import Wrong, wrong_at
from graphc.compiler.pass_points import GRAPH, Point, evaluated
from graphc.files.container import replacing
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import collect_data, print_graph
from graphc.passes.base import Pass
from graphc.passes.pipeline import PIPELINE

MARK = "// graphc check case 1"
"""First bytes of such a file."""
GRADIENT = "gradient"
"""The kind of a point that applies gradient rules."""
_LISTED = 64
"""Limit on elements written as numbers; larger arrays are compressed."""


@dataclass(frozen=True)
class CheckCase:
    """The content of a check file."""

    point: Point
    graph: Graph
    arguments: tuple[np.ndarray, ...]
    expected: tuple[np.ndarray, ...]
    """Outputs of the graph when the file was written."""
    what: str = ""
    """The error of the pass at that time."""

    def fault(self, passes: Sequence[Pass] = PIPELINE) -> str:
        """Return how the pass is wrong on the graph now; empty where it is right.

        ``passes`` are searched for a user's pass. Raise ArgumentError where the pass does not exist.
        """
        outputs = evaluated(self.graph, self.arguments)[0]
        for i, (output, expected) in enumerate(zip(outputs, self.expected, strict=True)):
            close = np.allclose(output, expected, 1e-4, 1e-5, equal_nan=True)
            if output.shape != expected.shape or not close:
                return f"output {i} of the graph itself differs from its value when the file was written"
        return wrong_by(self.point, passes)(self.graph, self.arguments)


def wrong_by(point: Point, passes: Sequence[Pass] = PIPELINE) -> Wrong:
    """Return a test that describes how the pass at a point is wrong on a graph and arguments."""
    if point.kind == GRADIENT:
        return wrong_rule
    if point.kind == GRAPH and all(p.name != point.name for p in passes):
        raise ArgumentError(
            f"there is no graph pass {point.name!r} here", remedy="pass your own passes too, in which the fault was"
        )
    return wrong_at(point, passes)


def write_case(fault: Fault, folder: str | os.PathLike[str]) -> Path:
    """Write a fault to a new file in a folder, and create the folder if necessary. Raise OSError."""
    assert fault.graph is not None
    directory = Path(folder)
    directory.mkdir(parents=True, exist_ok=True)
    stem = "".join(c if c.isalnum() else "_" for c in f"{fault.part}_{fault.point.name}")
    path = directory / f"{stem}.gc"
    number = 1
    while path.exists():
        number += 1
        path = directory / f"{stem}_{number}.gc"
    with replacing(path) as file:
        file.write(case_text(fault).encode())
    return path


def case_text(fault: Fault) -> str:
    """Return the content of a check file: comment lines with the case, then the text of the graph."""
    assert fault.graph is not None
    point = fault.point
    head = {"kind": point.kind, "pass": point.name, "number": point.number, "part": fault.part, "what": fault.what}
    lines = [MARK, f"// case {json.dumps(head)}"]
    lines += [f"// {line}" for line in fault.node.splitlines()]
    lines += [f"// argument {_array_text(a)}" for a in fault.arguments]
    lines += [f"// expected {_array_text(a)}" for a in evaluated(fault.graph, fault.arguments)[0]]
    lines += [f"// data {name} {_array_text(a)}" for name, a in collect_data(fault.graph).items()]
    return "\n".join([*lines, "", print_graph(fault.graph)])


def _array_text(array: np.ndarray) -> str:
    array = np.ascontiguousarray(array).reshape(np.shape(array))
    value: Any = {"dtype": array.dtype.str, "shape": list(array.shape)}
    if array.size <= _LISTED and array.dtype.kind in "fiub":
        value["values"] = array.reshape(-1).tolist()
    else:
        value["zlib"] = base64.b64encode(zlib.compress(array.tobytes())).decode()
    return json.dumps(value)


def _array(text: str) -> np.ndarray:
    value = json.loads(text)
    dtype = np.dtype(value["dtype"])
    if "values" in value:
        flat = np.asarray(value["values"], dtype)
    else:
        # NOTE: unpack no more bytes than the shape needs: a damaged file may expand without limit.
        nbytes = math.prod(max(n, 0) for n in value["shape"]) * dtype.itemsize
        flat = np.frombuffer(zlib.decompressobj().decompress(base64.b64decode(value["zlib"]), nbytes + 1), dtype)
    return flat.reshape(value["shape"]).copy()


def is_case(path: str | os.PathLike[str]) -> bool:
    """Check whether ``check`` wrote a file."""
    file_path = Path(path)
    if file_path.suffix != ".gc" or not file_path.is_file():
        return False
    with file_path.open("rb") as file:
        return file.read(len(MARK)) == MARK.encode()


def load_case(path: str | os.PathLike[str]) -> CheckCase:
    """Read a file that ``check`` wrote. Raise ArtifactError for any other content, and FileNotFoundError."""
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    if not text.startswith(MARK):
        raise ArtifactError(
            f"{os.fspath(path)} is not a case of graphc check", remedy=f"pass a file that begins with {MARK!r}"
        )
    try:
        return parse_case(text)
    except (ValueError, KeyError, TypeError, zlib.error, ParseError) as error:
        raise ArtifactError(f"{os.fspath(path)} is damaged: {error}") from error


def parse_case(text: str) -> CheckCase:
    """Parse the text of a check file."""
    fields: dict[str, list[str]] = {"case": [], "argument": [], "expected": [], "data": []}
    for line in text.splitlines():
        word, _, rest = line.removeprefix("// ").partition(" ")
        if line.startswith("// ") and word in fields:
            fields[word].append(rest)
    head = json.loads(fields["case"][0]) if fields["case"] else {}
    data = {name: _array(rest) for name, _, rest in (line.partition(" ") for line in fields["data"])}
    point = Point(head["kind"], int(head["number"]), head["pass"])
    arguments, expected = (tuple(map(_array, fields[word])) for word in ("argument", "expected"))
    return CheckCase(point, parse_graph(text, data), arguments, expected, head["what"])
