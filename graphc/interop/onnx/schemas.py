"""Schemas of ONNX's operators by version, from a table of the package ``onnx``, or from the package for newer versions.

The file ``schemas.txt`` has a line for each version of an operator: its domain, name, first version, and a Row as JSON.
``python -m tools.interop.onnx_schemas`` writes it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphc.base.records import NamedTuple
from graphc.interop.onnx.elements import BY_TYPE
from graphc.interop.onnx.graph import Source
from graphc.interop.onnx.package import defined, versions_of_package

TABLE = Path(__file__).parent / "schemas.txt"
MAIN = "ai.onnx"
"""Name of the domain "" in the table."""
SINGLE, OPTIONAL, VARIADIC = range(3)
"""Kinds of inputs and outputs."""
Row = tuple[list[list[Any]], list[list[Any]], dict[str, list[Any]], list[int]]
"""Type and kind of each input, the same of each output, attributes by name, and counts as in ``Schema``. An attribute
has its type code, whether it is required, and its default if it has one."""


class Schema(NamedTuple):
    """Schema of one version of an operator."""

    since: int
    """First version of the domain with this schema."""
    inputs: tuple[tuple[str, int], ...]
    """Type and kind."""
    outputs: tuple[tuple[str, int], ...]
    defaults: Mapping[str, Any]
    """Values by attribute name: numbers, strings and tuples of them."""
    attributes: Mapping[str, tuple[int, bool]]
    """Type code (as in ``AttributeProto``) by name, and whether the attribute is required."""
    counts: tuple[int, int, int, int]
    """Minimum and maximum number of inputs, minimum and maximum number of outputs."""

    def is_required(self, index: int) -> bool:
        """Return whether the input at this index cannot be left out."""
        return index < len(self.inputs) and self.inputs[index][1] == SINGLE

    def types(self, inputs: int, outputs: int) -> tuple[Source, ...]:
        """Return the source of each result's element type, for these counts of inputs and outputs."""
        input_types = _spread(self.inputs, inputs)
        return tuple([_source(text, input_types) for text in _spread(self.outputs, outputs)])


def _spread(parameters: tuple[tuple[str, int], ...], count: int) -> list[str]:
    """Return the types of ``count`` parameters. The last one may be variadic."""
    types = [text for text, _ in parameters[:count]]
    if parameters and parameters[-1][1] == VARIADIC:
        types += [parameters[-1][0]] * (count - len(types))
    return types


def _source(text: str, inputs: list[str]) -> Source:
    if text.startswith("tensor("):
        return BY_TYPE.get(text)
    return next((i for i, input_type in enumerate(inputs) if input_type == text), None)


@functools.lru_cache(maxsize=4096)
def schema(domain: str, op: str, version: int) -> Schema | None:
    """Return the schema of an operator in a version of its domain, or None where it has none.

    Raises ArgumentError where only the package knows the version and is not installed.
    """
    rows, newest = _table()
    if version > newest.get(domain, version):
        raw = defined(domain, op, version)
        return None if raw is None else _schema(raw.since_version, row_of(raw))
    known = [pair for pair in rows.get((domain, op), ()) if pair[0] <= version]
    return _schema(known[-1][0], json.loads(known[-1][1])) if known else None


def newest_version(domain: str, wanted: int = 0) -> int | None:
    """Return the newest known version of one of ONNX's own domains, or None for another domain.

    Ask the package only if ``wanted`` is beyond the table.
    """
    newest = _table()[1]
    if domain not in newest or wanted <= newest[domain]:
        return newest.get(domain)
    return max(newest[domain], versions_of_package().get(domain, 0))


@functools.cache
def _table() -> tuple[dict[tuple[str, str], list[tuple[int, str]]], dict[str, int]]:
    """Return the versions of each operator in order with their rows as JSON, and the newest versions of domains."""
    rows: dict[tuple[str, str], list[tuple[int, str]]] = {}
    newest: dict[str, int] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        domain, op, version, row = line.split(" ", 3)
        domain = "" if domain == MAIN else domain
        if op:
            rows.setdefault((domain, op), []).append((int(version), row))
        else:
            newest[domain] = int(version)
    return rows, newest


def _schema(since: int, row: Row) -> Schema:
    inputs, outputs, attributes, counts = row
    defaults = {n: a[2] for n, a in attributes.items() if len(a) > 2}
    return Schema(
        since,
        tuple([(t, k) for t, k in inputs]),
        tuple([(t, k) for t, k in outputs]),
        {n: tuple(v) if isinstance(v, list) else v for n, v in defaults.items()},
        {n: (a[0], a[1]) for n, a in attributes.items()},
        (counts[0], counts[1], counts[2], counts[3]),
    )


def row_of(raw: Any) -> Row:
    """Return the row of an OpSchema of the package."""
    attributes = {n: [int(a.type), bool(a.required), *_default(a.default_value)] for n, a in raw.attributes.items()}
    counts = [raw.min_input, raw.max_input, raw.min_output, raw.max_output]
    return (
        [[p.type_str, _kind(p)] for p in raw.inputs],
        [[p.type_str, _kind(p)] for p in raw.outputs],
        attributes,
        counts,
    )


def _kind(parameter: Any) -> int:
    return {"Single": SINGLE, "Optional": OPTIONAL, "Variadic": VARIADIC}[parameter.option.name]


def _default(proto: Any) -> list[Any]:
    """Return the value of an AttributeProto in a list; an empty list where it has none."""
    if not (proto.name or proto.type):
        return []
    kinds = {1: lambda: proto.f, 2: lambda: proto.i, 3: lambda: proto.s.decode(), 6: lambda: [*proto.floats]}
    kinds |= {7: lambda: [*proto.ints], 8: lambda: [s.decode() for s in proto.strings]}
    return [kinds[proto.type]()]
