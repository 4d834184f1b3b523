"""The net of damaged ``.pt2`` files: each is read and run in memory of the file's scale, or is a typed error.

``python -m tools.damage.pt2_files --count 1000 --seed 0``; ``--jobs 2`` uses two processes.
"""

from __future__ import annotations

import io
import json
import random
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import graphc as gc
from tools.damage.corruption import BYTES, Damage, cases_of, damaged_of, edit_json, read_and_run
from tools.nets.run import Net, Outcome, main

FILES = Path(__file__).parents[2] / "tests" / "interop" / "pt2" / "files"
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 7, 64, 1 << 31, 1 << 40, 1 << 62, 1 << 63, 1 << 70, -(1 << 63), 10**400),
    *(0.5, 1e308, -0.0, "", "x", "x" * 5000, "NaN", "Infinity", "../../x", "/etc/passwd", "weight_0", "\0", "\ud800"),
    *([], {}, [[]], [{}], {"as_int": 3}, {"as_name": "x"}, {"as_tensor": {"name": "x"}}, {"as_none": True}),
    *({"as_expr": {"expr_str": "s0 // (s0 - s0)", "hint": None}}, {"as_int": 1 << 45}),
    *({"as_expr": {"expr_str": "Pow(Pow(Integer(9), Integer(64)), Integer(64))", "hint": None}},),
    *({"as_expr": {"expr_str": "__import__('os').system('true')", "hint": None}},),
)
"""Replacement values of a field."""
_TEXTS = ('{"a": NaN}', "[" * 100000, '{"x": 1, "x": 2}', "9" * 5000, "1e999", '"\\ud800"', "", "nul", "\0", "[" * 900)
"""Replacements of a whole description."""


def _end(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Return another byte in the directory of the archive, which says where everything lies and how large it is."""
    begin = data.rfind(b"PK\x01\x02", 0, chance.randrange(len(data) // 2, len(data)) + 1)
    end = chance.randrange(max(begin, 0), min(max(begin, 0) + 60, len(data)))
    return data[:end] + bytes([chance.choice((0, 1, 127, 255))]) + data[end + 1 :]


def _members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _packed(members: list[tuple[str, bytes]], compressed: bool = False) -> bytes:
    file = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return file.getvalue()


def _rearrange(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Return an archive whose members are missing, renamed, exchanged, doubled, compressed, or of another length."""
    members = list(_members(data).items())
    chosen, other = chance.randrange(len(members)), chance.randrange(len(members))
    name, content = members[chosen]
    kind = chance.randrange(6)
    if kind == 0:
        del members[chosen]
    elif kind == 1:
        members[chosen] = chance.choice(("../" + name, "/" + name, name + "/x", "other/" + name, "a//b")), content
    elif kind == 2:
        members[chosen] = name, members[other][1]
    elif kind == 3:
        members[chosen] = name, content[: chance.randrange(len(content) + 1)] + b"\0" * chance.randrange(9)
    elif kind == 4:
        members.append((name + "x", content * 3))
    return _packed(members, kind == 5)


def _edit(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Return an archive with damaged fields in one of its descriptions."""
    members = _members(data)
    name = chance.choice([n for n in members if n.endswith(".json")] + [n for n in members if "/models/" in n] * 3)
    members[name] = json.dumps(edit_json(chance, json.loads(members[name]), _VALUES, "metadata")).encode()
    return _packed(list(members.items()))


def _rewrite(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    members = _members(data)
    name = chance.choice([n for n in members if n.endswith(".json")])
    members[name] = chance.choice(_TEXTS).encode("utf-8", "surrogatepass")
    return _packed(list(members.items()))


DAMAGES: dict[str, tuple[Damage, int]] = {
    **BYTES,
    "edit": (_edit, 24),
    "end": (_end, 3),
    "rearrange": (_rearrange, 6),
    "rewrite": (_rewrite, 3),
}


@lru_cache(maxsize=1)
def files() -> tuple[bytes, ...]:
    """Return the undamaged files."""
    return tuple(path.read_bytes() for path in sorted(FILES.glob("*.pt2")))


def cases(seed: int) -> Iterator[str]:
    """Yield ``damage/number`` without end."""
    return cases_of(DAMAGES, seed)


def damaged(case: str) -> bytes:
    """Return the file of a case."""
    return damaged_of(DAMAGES, case, files())


def judge(case: str) -> Outcome:
    """Read the file of a case and run the model with zeros."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pt2"
        path.write_bytes(damaged(case))
        return read_and_run(lambda: gc.from_pt2(path), lambda model: model(*model.examples()))


NET = Net("damage.pt2_files", (__doc__ or "").partition("\n")[0], cases, judge, isolated=True, groups=True)

if __name__ == "__main__":
    sys.exit(main(NET, count=1000))
