"""The nets of damaged and forged model files and cache entries.

``python -m tools.damage.model_files --count 10000 [--cache 2000]``. A file is one of a few models (one entry, several
that share weights, open sizes, native code). One kind of damage leaves digests unchanged: flips,
cuts, bytes appended, dropped, overwritten or repeated, exchanged sections. The other kind repairs the digests: lengths
and offsets in the table, digests of another file, names of sections, manifests and graphs with other contents. The
first kind and wrong tables must be refused; a file with right digests must be refused or be a callable model (*equal*).
A damaged cache entry must never be used: the program is built again, with one warning.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import struct
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import graphc as gc
from graphc import nn
from graphc.compiler import cache
from graphc.compiler.compile import compile_graph, load_compiled
from graphc.compiler.example_arrays import random_array
from graphc.files import container
from graphc.ir.graph.parse import parse_graph
from graphc.models.file_report import report_of
from graphc.models.model_file import load
from graphc.nn.functional import cross_entropy
from tools.damage.corruption import BYTES, Damage, cases_of, damaged_of, edit_json, read_and_run
from tools.damage.forked import finish
from tools.nets.run import EQUAL, FAILED, REFUSED, Net, Outcome, main

MOST_MEMORY = 1 << 31
"""Bytes of address space that reading and running a file may add."""
_HEADER, _ENTRY = struct.Struct("<8sIIQ8x32s"), struct.Struct("<16sQQ32s")
_WHOLE = (0, 1, -1, 63, 64, 1 << 20, 1 << 31, 1 << 40, (1 << 63) - 1, -(1 << 63), 1 << 70)
_VALUES: tuple[Any, ...] = (
    *_WHOLE,
    *("", "x", "0.weight", "forward", "train_step", "a" * 5000, "f32", "f99", "weights", "é\0", "..", "relu"),
    *(None, [], {}, True, 1.5, [[]] * 70),
)
"""Replacement values of fields."""
GRAPH = """
graph @net(%x: f32[7,24]) -> (f32[7,7], f32[7]) {
  %p = matmul(%x, %x) {transpose_b=true} : f32[7,7]
  %y = maximum(%p, f32(0.0)) : f32[7,7]
  %s = sum(%y) {axes=[1]} : f32[7]
  return %y, %s
}
"""


# ---- damage below the digests


def _swap(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Return two sections whose contents change places, the digests in the table staying where they are."""
    table, sections = _parts(data)
    first, second = chance.sample(range(len(table)), 2)
    sections[first], sections[second] = sections[second], sections[first]
    return _joined([e[0] for e in table], sections, digests=[e[3] for e in table])


# ---- damage with repaired digests


def _parts(data: bytes) -> tuple[list[tuple[bytes, int, int, bytes]], list[bytes]]:
    count = _HEADER.unpack_from(data)[2]
    table = [_ENTRY.unpack_from(data, _HEADER.size + i * _ENTRY.size) for i in range(count)]
    return table, [data[offset : offset + length] for _, offset, length, _ in table]


def _with_table(table: Sequence[tuple[bytes, int, int, bytes]], body: bytes, size: int, version: int = 2) -> bytes:
    """Return a file with this table, of which the digest of the header is right."""
    text = b"".join(_ENTRY.pack(*entry) for entry in table)
    head = _HEADER.pack(container.MAGIC, version, len(table), size, b"")[:32]
    return head + hashlib.sha256(head + text).digest() + text + body


def _joined(names: Sequence[bytes], sections: Sequence[bytes], digests: Sequence[bytes] | None = None) -> bytes:
    """Return a file of sections, with right digests unless others are given."""
    start = end = _HEADER.size + _ENTRY.size * len(names)
    table, body = [], b""
    for i, (name, section) in enumerate(zip(names, sections, strict=True)):
        offset = container.align(end)
        digest = hashlib.sha256(section).digest() if digests is None else digests[i]
        table.append((name, offset, len(section), digest))
        body += bytes(offset - end) + section
        end = offset + len(section)
    return _with_table(table, body, start + len(body))


def _table(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return a file whose table of lengths, offsets and digests, or whose size of the header, does not fit its
    contents."""
    table, _ = _parts(data)
    body, size = data[_HEADER.size + _ENTRY.size * len(table) :], len(data)
    number, kind = chance.randrange(len(table)), chance.randrange(5)
    name, offset, length, digest = table[number]
    large = chance.choice((1, 64, 1 << 31, 1 << 40, (1 << 64) - 1, len(data), (1 << 64) - 64))
    if kind == 0:
        table[number] = name, offset, (length + large) % (1 << 64), digest
    elif kind == 1:
        table[number] = name, (offset + large) % (1 << 64), length, digest
    elif kind == 2:
        size = (size + large) % (1 << 64)
    elif kind == 3:
        foreign = [e[3] for other in others for e in _parts(other)[0] if e[3] != digest]
        table[number] = name, offset, length, chance.choice([*foreign, bytes(32)])
    else:
        table.insert(number, table[number])
    return _with_table(table, body, size)


def _names(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Return sections that change places together with their digests, lack, come twice or have another name."""
    table, sections = _parts(data)
    names = [e[0] for e in table]
    first, second = chance.sample(range(len(names)), 2)
    kind = chance.randrange(4)
    if kind == 0:
        sections[first], sections[second] = sections[second], sections[first]
    elif kind == 1:
        del names[first], sections[first]
    elif kind == 2:
        names.append(b"more")
        sections.append(sections[first])
    else:
        names[first] = chance.choice((b"graph.9", b"object.7", b"", b"manifest", b"\xff" * 16))
    return _joined(names, sections)


def _section(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return a section of another file, or of another length."""
    table, sections = _parts(data)
    number = chance.randrange(len(table))
    other_table, other = _parts(chance.choice(others))
    same = [s for e, s in zip(other_table, other, strict=True) if e[0] == table[number][0]]
    old = sections[number]
    changed = [old[:-1], old + bytes(64), old[: len(old) // 2], old + old, b""]
    sections[number] = chance.choice([*same * 3, *changed])
    return _joined([e[0] for e in table], sections)


def _manifest(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Return a manifest that lies, in one to three places."""
    table, sections = _parts(data)
    manifest = edit_json(chance, json.loads(sections[0]), _VALUES)
    sections[0] = json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()
    return _joined([e[0] for e in table], sections)


def _graph(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Return a graph with changed, missing, doubled or exchanged words, lines or characters."""
    table, sections = _parts(data)
    number = chance.choice([i for i, e in enumerate(table) if e[0].startswith(b"graph")])
    lines = sections[number].decode().split("\n")
    words = [w for line in lines for w in line.split()]
    index = chance.randrange(len(lines))
    kind = chance.randrange(5)
    if kind == 0:
        del lines[index]
    elif kind == 1:
        lines.insert(index, chance.choice(lines))
    elif kind == 2:
        lines[index] = lines[index].replace(chance.choice(words), chance.choice(words))
    elif kind == 3:
        number_text = str(chance.choice(_WHOLE))
        lines[index] = "".join(number_text if c.isdigit() and chance.randrange(4) == 0 else c for c in lines[index])
    else:
        spot = chance.randrange(len(lines[index]) + 1)
        lines[index] = lines[index][:spot] + chance.choice('(){}[]%,:=@\0"é') + lines[index][spot:]
    sections[number] = "\n".join(lines).encode()
    return _joined([e[0] for e in table], sections)


BELOW: dict[str, tuple[Damage, int]] = {**BYTES, "swap": (_swap, 2), "table": (_table, 4)}
"""Damages that digests or the table show."""
FORGED: dict[str, tuple[Damage, int]] = {
    "names": (_names, 2),
    "section": (_section, 2),
    "manifest": (_manifest, 4),
    "graph": (_graph, 2),
}
"""Damages with right digests. Their outcome may be a model, since digests do not tell the author."""
DAMAGES = {**BELOW, **FORGED}


# ---- files


def make_files(folder: Path) -> None:
    """Write the undamaged files."""
    batch = gc.Dim("batch", 1, 64)
    gc.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))
    x, y = gc.randn(4, 6), gc.randint(0, 3, (4,))
    step = gc.compile_step(net, cross_entropy, gc.optim.Adam(net.parameters(), lr=0.01))
    gc.export(nn.Linear(5, 2), gc.zeros(3, 5), path=folder / "one.gcm", native=True)
    entries = {
        "infer": gc.Entry(net, x, train=False),
        "train_step": gc.Entry(step, x, y),
        "norm": gc.Entry(lambda v: (v * v).sum(), gc.zeros(7)),
    }
    gc.export(entries, path=folder / "several.gcm")
    gc.export(net.eval(), x, path=folder / "sized.gcm", dims=[(batch,)])
    gc.export(nn.Linear(5, 2), gc.zeros(3, 5), path=folder / "derivative.gcm", derivative=True)


@lru_cache(maxsize=1)
def files() -> tuple[bytes, ...]:
    """Return the undamaged files, written by a child process."""
    with tempfile.TemporaryDirectory() as name:
        problem = finish(partial(make_files, Path(name)), Path(name) / "log")
        assert not problem, problem
        return tuple(path.read_bytes() for path in sorted(Path(name).glob("*.gcm")))


def judge(case: str) -> Outcome:
    """Read a damaged file, and call the entries of the model if there is one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.gcm"
        path.write_bytes(damaged_of(DAMAGES, case, files()))
        return judge_file(case.partition("/")[0] in FORGED, path)


def judge_file(forged: bool, path: Path) -> Outcome:
    """Read a file: it must be refused, or be a model that can be called if it is forged."""

    def read() -> tuple[Any, Any]:
        return report_of(path), load(path, trust=not forged)

    def call(pair: tuple[Any, Any]) -> str | None:
        if not forged:
            return "it was loaded"
        # NOTE: the first call reads the graph of an entry, a request for gradients those of its derivatives.
        for entry in pair[1].entries.values():
            entry.run([random_array(spec, i) for i, spec in enumerate(entry.inputs)])
        return None

    return read_and_run(read, call, MOST_MEMORY)


# ---- entries of the cache


def make_entry(folder: Path) -> None:
    """Write an entry of the cache, and the results of its program."""
    os.environ |= {"GRAPHC_CACHE": "on", "GRAPHC_CACHE_DIR": str(folder / "cache")}
    arrays = load_compiled(compile_graph(parse_graph(GRAPH))).run([_x()])
    np.savez(folder / "expected.npz", *arrays)


def _x() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((7, 24)).astype(np.float32)


@lru_cache(maxsize=1)
def entry() -> tuple[str, bytes, dict[str, np.ndarray]]:
    """Return the name and the contents of an entry of the cache, and the results of its program."""
    with tempfile.TemporaryDirectory() as name:
        problem = finish(partial(make_entry, Path(name)), Path(name) / "log")
        assert not problem, problem
        (path,) = (Path(name) / "cache").glob(f"*{cache.SUFFIX}")
        with np.load(Path(name) / "expected.npz") as expected:
            return path.name, path.read_bytes(), dict(expected)


def judge_entry(case: str) -> Outcome:
    """Compile the program of a damaged entry: it must be built again, with one warning, and compute the same."""
    name, data, expected = entry()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(damaged_of(BELOW, case, (data,), files()))
        os.environ |= {"GRAPHC_CACHE": "on", "GRAPHC_CACHE_DIR": folder}
        cache._warned.clear()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            outcome = read_and_run(lambda: compile_graph(parse_graph(GRAPH)), partial(_compare, expected), MOST_MEMORY)
    if outcome.kind == EQUAL and [w.category for w in said] != [RuntimeWarning]:
        return Outcome(FAILED, f"{len(said)} warnings")
    return outcome._replace(kind=FAILED) if outcome.kind == REFUSED else outcome


def _compare(expected: dict[str, np.ndarray], compiled: Any) -> str | None:
    if "cache" in compiled.stages.seconds:
        return "it was used"
    results = load_compiled(compiled).run([_x()])
    same = all(np.array_equal(r, expected[f"arr_{i}"]) for i, r in enumerate(results))
    return None if same else "other numbers"


def _net(what: str, kinds: dict[str, tuple[Damage, int]], judged: Callable[[str], Outcome]) -> Net:
    def cases(seed: int) -> Iterator[str]:
        files()  # before processes are forked
        return cases_of(kinds, seed)

    return Net(
        "damage.model_files",
        f"Damaged {what} (--cache N: N entries of the cache).",
        cases,
        judged,
        isolated=True,
        groups=True,
    )


FILES, ENTRIES = _net("model files", DAMAGES, judge), _net("entries", BELOW, judge_entry)


def command(argv: Sequence[str] | None = None) -> int:
    """Run both nets; return the exit status."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--count", type=int, default=10_000, help="number of damaged model files")
    parser.add_argument("--cache", type=int, default=0, metavar="N", help="number of damaged cache entries")
    options, rest = parser.parse_known_args(argv)
    statuses = [
        main(net, [*rest, "--count", str(count)], count)
        for net, count in ((FILES, options.count), (ENTRIES, options.cache))
        if count
    ]
    return max(statuses, default=0)


if __name__ == "__main__":
    sys.exit(command())
