"""Lists of named statements as text, compiled to functions: events of trainings, changes between calls."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

_ENTRY = re.compile(r"^([\w.]+)(?: \[(\w+)\])?:(.*(?:\n[ ].*)*)$", re.MULTILINE)


class Entry(NamedTuple):
    """An entry of a text: ``name [tag]: statement``, or a line for each statement."""

    name: str
    tag: str
    """The word in brackets, or an empty text."""
    text: str
    """The statements."""
    function: Callable[..., Any]
    """The statements as a function, a generator if one of them is ``yield``."""


def entries(text: str, arguments: str, names: Mapping[str, Any]) -> Iterator[Entry]:
    """Yield the entries of a text, as functions of ``arguments`` whose globals are ``names``.

    On one line ``a => b`` means the statements ``a``, ``yield`` and ``b``. Raises ValueError for a line that belongs to
    no entry.
    """
    count = 0
    for name, tag, body in _ENTRY.findall(text):
        statements = textwrap.dedent(body).strip().replace(" => ", "\nyield\n")
        source = f"def entry({arguments}):\n{textwrap.indent(statements, '    ')}"
        scope = dict(names)
        exec(compile(source, f"<{name}>", "exec"), scope)
        yield Entry(name, tag, statements, scope["entry"])
        count += 1
    if count != sum(not line.startswith(" ") for line in text.splitlines() if line):
        raise ValueError("a line that belongs to no entry")
