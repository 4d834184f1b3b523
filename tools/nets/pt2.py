"""The net of damaged ``.pt2`` files: each is read and run in memory of the file's scale, or is a typed error.

``python -m tools.nets.pt2 --seconds 60 --seed 0``
"""

from __future__ import annotations

import copy
import io
import json
import random
import resource
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import graphc as gc
from graphc.base.errors import GraphcError
from graphc.tape.grad_mode import no_grad
from tools.nets.run import DIFFERENT, EQUAL, FAILED, REFUSED, Net, Outcome, main

FILES = Path(__file__).parents[2] / "tests" / "interop" / "pt2" / "files"
MOST_MEMORY = 1 << 32
"""Bytes of address space that reading and running a damaged file may add."""
MOST_SECONDS = 5.0
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
Damage = Callable[[random.Random, bytes], bytes]


def _flip(chance: random.Random, data: bytes) -> bytes:
    damaged = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8, 64))):
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    return bytes(damaged)


def _cut(chance: random.Random, data: bytes) -> bytes:
    return data[: chance.randrange(len(data))]


def _drop(chance: random.Random, data: bytes) -> bytes:
    begin = chance.randrange(len(data))
    return data[:begin] + data[begin + chance.randrange(1, 200) :]


def _repeat(chance: random.Random, data: bytes) -> bytes:
    begin = chance.randrange(len(data))
    return data[:begin] + data[begin : begin + 300] + data[begin:]


def _end(chance: random.Random, data: bytes) -> bytes:
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


def _rearrange(chance: random.Random, data: bytes) -> bytes:
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


def _places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, child in items:
        yield (*path, key)
        yield from _places(child, (*path, key))


def _edit(chance: random.Random, data: bytes) -> bytes:
    """Return an archive in whose description one field has another value, is missing, moved, or copied from
    elsewhere."""
    members = _members(data)
    name = chance.choice([n for n in members if n.endswith(".json")] + [n for n in members if "/models/" in n] * 3)
    tree = json.loads(members[name])
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        paths = [p for p in _places(tree) if "metadata" not in p]
        if paths:
            _edit_at(chance, tree, chance.choice(paths), paths)
    members[name] = json.dumps(tree).encode()
    return _packed(list(members.items()))


def _edit_at(chance: random.Random, tree: Any, path: tuple[Any, ...], paths: list[tuple[Any, ...]]) -> None:
    holder, key = _at(tree, path[:-1]), path[-1]
    kind = chance.randrange(6)
    if kind == 0:
        del holder[key]
    elif kind == 1:
        holder[key] = json.loads(json.dumps(_at(tree, chance.choice(paths))))
    elif kind == 2 and isinstance(holder, list):
        chance.shuffle(holder)
    elif kind == 3 and isinstance(holder, dict):
        holder[key + "x"] = holder.pop(key)
    elif kind == 4 and type(holder[key]) is int:
        holder[key] += chance.choice((-1, 1, 1000))
    else:
        holder[key] = copy.deepcopy(chance.choice(_VALUES))


def _at(tree: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def _rewrite(chance: random.Random, data: bytes) -> bytes:
    members = _members(data)
    name = chance.choice([n for n in members if n.endswith(".json")])
    members[name] = chance.choice(_TEXTS).encode("utf-8", "surrogatepass")
    return _packed(list(members.items()))


DAMAGES: dict[str, Damage] = {
    "edit": _edit,
    "flip": _flip,
    "cut": _cut,
    "drop": _drop,
    "repeat": _repeat,
    "end": _end,
    "rearrange": _rearrange,
    "rewrite": _rewrite,
}
_SHARES = {"edit": 8, "rearrange": 2}


@lru_cache(maxsize=64)
def _whole(name: str) -> bytes:
    return (FILES / f"{name}.pt2").read_bytes()


def cases(seed: int) -> Iterator[str]:
    """Yield ``file/damage/number`` without end."""
    chance = random.Random(seed)
    names = sorted(path.stem for path in FILES.glob("*.pt2"))
    kinds = [kind for kind in DAMAGES for _ in range(_SHARES.get(kind, 1))]
    number = 0
    while True:
        yield f"{chance.choice(names)}/{chance.choice(kinds)}/{seed * 1_000_000 + number}"
        number += 1


def damaged(case: str) -> bytes:
    """Return the file of a case."""
    name, kind, number = case.split("/")
    return DAMAGES[kind](random.Random(number), _whole(name))


def judge(case: str) -> Outcome:
    """Read the file of a case and run the model with zeros."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pt2"
        path.write_bytes(damaged(case))
        begin = time.process_time()
        with _limited():
            outcome = _read_and_run(path)
        seconds = time.process_time() - begin
    return Outcome(DIFFERENT, f"it took {seconds:.1f} s") if seconds > MOST_SECONDS else outcome


def _read_and_run(path: Path) -> Outcome:
    try:
        model = gc.from_pt2(path)
    except GraphcError as error:
        return Outcome(REFUSED, f"read: {error}")
    except Exception as error:
        return Outcome(FAILED, f"read: {type(error).__name__}: {error}")
    try:
        with no_grad():
            model(*model.examples())
    # NOTE: a graph with a large tensor needs that memory in any implementation.
    except (GraphcError, MemoryError) as error:
        return Outcome(REFUSED, f"run: {error}")
    except Exception as error:
        return Outcome(FAILED, f"run: {type(error).__name__}: {error}")
    return Outcome(EQUAL)


@contextmanager
def _limited() -> Iterator[None]:
    """Limit the process to MOST_MEMORY beyond its present size."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MOST_MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


NET = Net("pt2", "Damaged .pt2 files are read and run, or a typed error says why not.", cases, judge)

if __name__ == "__main__":
    sys.exit(main(NET))
