"""One fault of the compiler as a file: the text of a small graph, its arguments, the pass, and what is right."""

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
"""How such a file begins."""
GRADIENT = "gradient"
"""The kind of a point where the rules of gradients are applied."""
_LISTED = 64
"""Most elements that are written as numbers."""


@dataclass(frozen=True)
class CheckCase:
    """What a file holds."""

    point: Point
    graph: Graph
    arguments: tuple[np.ndarray, ...]
    expected: tuple[np.ndarray, ...]
    """What the graph gave when the file was written."""
    what: str = ""
    """How the pass was wrong then."""

    def fault(self, passes: Sequence[Pass] = PIPELINE) -> str:
        """How the pass is wrong on the graph now; empty where it is right. ``passes`` are where one of a user is looked
        for. Raises ArgumentError where there is no such pass."""
        outputs = evaluated(self.graph, self.arguments)[0]
        for i, (found, expected) in enumerate(zip(outputs, self.expected, strict=True)):
            close = np.allclose(found, expected, 1e-4, 1e-5, equal_nan=True)
            if found.shape != expected.shape or not close:
                return f"output {i} of the graph itself is not what it was when the file was written"
        return wrong_by(self.point, passes)(self.graph, self.arguments)


def wrong_by(point: Point, passes: Sequence[Pass] = PIPELINE) -> Wrong:
    """How the pass at a point is wrong on a graph and arguments."""
    if point.kind == GRADIENT:
        return wrong_rule
    if point.kind == GRAPH and all(p.name != point.name for p in passes):
        raise ArgumentError(
            f"there is no graph pass {point.name!r} here", remedy="give the passes of your own that the fault was in"
        )
    return wrong_at(point, passes)


def write_case(fault: Fault, folder: str | os.PathLike[str]) -> Path:
    """Writes a fault to a new file of a folder, which is made where there is none. Raises OSError."""
    assert fault.graph is not None
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    stem = "".join(c if c.isalnum() else "_" for c in f"{fault.part}_{fault.point.name}")
    path = place / f"{stem}.gc"
    number = 1
    while path.exists():
        number += 1
        path = place / f"{stem}_{number}.gc"
    with replacing(path) as file:
        file.write(case_text(fault).encode())
    return path


def case_text(fault: Fault) -> str:
    """The content of such a file: the text of the graph, after lines that a reader of graphs takes for comments."""
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
        # NOTE: no more than the shape says is unpacked, whatever the file holds.
        nbytes = math.prod(max(n, 0) for n in value["shape"]) * dtype.itemsize
        flat = np.frombuffer(zlib.decompressobj().decompress(base64.b64decode(value["zlib"]), nbytes + 1), dtype)
    return flat.reshape(value["shape"]).copy()


def is_case(path: str | os.PathLike[str]) -> bool:
    """Whether a file is one that ``check`` wrote."""
    place = Path(path)
    if place.suffix != ".gc" or not place.is_file():
        return False
    with place.open("rb") as file:
        return file.read(len(MARK)) == MARK.encode()


def load_case(path: str | os.PathLike[str]) -> CheckCase:
    """Reads a file that ``check`` wrote. Raises ArtifactError for any other content, FileNotFoundError."""
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    if not text.startswith(MARK):
        raise ArtifactError(f"{os.fspath(path)} is no case of graphc check", remedy=f"a file that begins with {MARK!r}")
    try:
        return parse_case(text)
    except (ValueError, KeyError, TypeError, zlib.error, ParseError) as error:
        raise ArtifactError(f"{os.fspath(path)} is damaged: {error}") from error


def parse_case(text: str) -> CheckCase:
    """What the text of such a file holds."""
    found: dict[str, list[str]] = {"case": [], "argument": [], "expected": [], "data": []}
    for line in text.splitlines():
        word, _, rest = line.removeprefix("// ").partition(" ")
        if line.startswith("// ") and word in found:
            found[word].append(rest)
    head = json.loads(found["case"][0]) if found["case"] else {}
    data = {name: _array(rest) for name, _, rest in (line.partition(" ") for line in found["data"])}
    point = Point(head["kind"], int(head["number"]), head["pass"])
    arguments, expected = (tuple(map(_array, found[word])) for word in ("argument", "expected"))
    return CheckCase(point, parse_graph(text, data), arguments, expected, head["what"])
