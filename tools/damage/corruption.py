"""Damage to files: bytes, archives of sections, fields of JSON; and how a net draws its cases from kinds of damage."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from graphc.base.errors import GraphcError
from graphc.tape.grad_mode import no_grad
from tools.damage.forked import limited
from tools.nets.run import DIFFERENT, EQUAL, FAILED, REFUSED, Outcome

Damage = Callable[[random.Random, bytes, Sequence[bytes]], bytes]
"""Function of a random generator, a file and others that returns a damaged file."""
MOST_MEMORY = 1 << 32
"""Bytes of address space that reading and running a damaged file may add."""
MOST_SECONDS = 20.0
"""Seconds after which reading and running a damaged file counts as hanging."""


def flip(chance: random.Random, data: bytes, others: Sequence[bytes] = ()) -> bytes:
    """Change some bytes, by a bit or altogether."""
    del others
    damaged = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 8, 64))):
        old = damaged[at := chance.randrange(len(damaged))]
        damaged[at] = chance.choice((old ^ 1 << chance.randrange(8), chance.randrange(256)))
    return bytes(damaged)


def cut(chance: random.Random, data: bytes, _: Sequence[bytes] = ()) -> bytes:
    """Cut off the end."""
    return data[: chance.randrange(len(data))]


def append(chance: random.Random, data: bytes, others: Sequence[bytes] = ()) -> bytes:
    """Append zeros, random bytes or another file."""
    return data + chance.choice((b"\0", bytes(64), chance.randbytes(100), *others))


def drop(chance: random.Random, data: bytes, _: Sequence[bytes] = ()) -> bytes:
    """Leave out some bytes."""
    begin = chance.randrange(len(data))
    return data[:begin] + data[begin + chance.choice((1, 64, chance.randrange(1, 500))) :]


def overwrite(chance: random.Random, data: bytes, _: Sequence[bytes] = ()) -> bytes:
    """Overwrite some bytes by zeros, ones or random ones."""
    begin, length = chance.randrange(len(data)), chance.choice((1, 32, 64, 512))
    new = chance.choice((bytes(length), b"\xff" * length, chance.randbytes(length)))
    return data[:begin] + new[: len(data) - begin] + data[begin + length :]


def splice(chance: random.Random, data: bytes, others: Sequence[bytes] = ()) -> bytes:
    """Put a piece of this file, or of another one, in the place of another piece or between two halves."""
    source = chance.choice((data, *others))
    begin, length = chance.randrange(len(source)), chance.choice((16, 64, 256, chance.randrange(1, 300)))
    offset = chance.randrange(len(data))
    return data[:offset] + source[begin : begin + length] + data[offset + length * chance.randrange(2) :]


BYTES: dict[str, tuple[Damage, int]] = {
    "flip": (flip, 6),
    "cut": (cut, 3),
    "append": (append, 1),
    "drop": (drop, 2),
    "overwrite": (overwrite, 2),
    "splice": (splice, 2),
}
"""Damage to bytes of any file by name, with the weight with which each is drawn."""


def cases_of(kinds: Mapping[str, tuple[Any, int]], seed: int) -> Iterator[str]:
    """Yield ``damage/number`` without end, the damage drawn by weight."""
    names = [name for name, (_, weight) in kinds.items() for _ in range(weight)]
    number = 1_000_000 * seed
    while True:
        yield f"{random.Random(number).choice(names)}/{number}"
        number += 1


def damaged_of(
    kinds: Mapping[str, tuple[Damage, int]], case: str, files: Sequence[bytes], more: Sequence[bytes] = ()
) -> bytes:
    """Return the file of a case: one of the files, damaged until it differs; pieces come from ``more`` files, too."""
    chance = random.Random(case)
    data = chance.choice(files)
    others = [other for other in (*files, *more) if other is not data]
    while (result := kinds[case.partition("/")[0]][0](chance, data, others)) == data:
        continue
    return result


def _places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, child in items:
        yield (*path, key)
        yield from _places(child, (*path, key))


def _at(tree: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def edit_json(chance: random.Random, tree: Any, values: Sequence[Any], left_out: str = "") -> Any:
    """Return a JSON value with one to three fields missing, moved, doubled, copied from elsewhere, or changed."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        paths = [p for p in _places(tree) if left_out not in p]
        if paths:
            _edit(chance, tree, chance.choice(paths), paths, values)
    return tree


def _edit(chance: random.Random, tree: Any, path: tuple[Any, ...], paths: Sequence[Any], values: Sequence[Any]) -> None:
    holder, key = _at(tree, path[:-1]), path[-1]
    old, kind = holder[key], chance.randrange(8)
    same = [v for v in values if type(v) is type(old)]
    if kind == 0:
        del holder[key]
    elif kind == 1:
        holder[key] = copy.deepcopy(_at(tree, chance.choice(paths)))
    elif kind == 2 and isinstance(holder, list):
        chance.shuffle(holder)
    elif kind == 3 and isinstance(holder, list):
        holder.insert(0, copy.deepcopy(old))
    elif kind in (2, 3) and isinstance(holder, dict):
        holder[f"{key}x"] = holder.pop(key)
    elif kind == 4 and type(old) is int:
        holder[key] += chance.choice((-1, 1, 1000))
    else:
        holder[key] = copy.deepcopy(chance.choice(same if same and kind > 5 else values))


def read_and_run(
    read: Callable[[], Any], run: Callable[[Any], Any], memory: int = MOST_MEMORY, seconds: float = MOST_SECONDS
) -> Outcome:
    """Read a damaged file and run its model, in limited memory and time: both succeed, or raise a typed error."""
    doing = "read"
    try:
        with limited(memory, seconds), no_grad():
            model = read()
            doing = "run"
            problem = run(model)
    except GraphcError as error:
        return Outcome(REFUSED, f"{doing}: {error}")
    except Exception as error:
        # NOTE: a graph with a large tensor needs that memory in any implementation.
        kind = REFUSED if isinstance(error, MemoryError) and doing == "run" else FAILED
        return Outcome(kind, f"{doing}: {type(error).__name__}: {error}")
    return Outcome(DIFFERENT, problem) if isinstance(problem, str) else Outcome(EQUAL)
