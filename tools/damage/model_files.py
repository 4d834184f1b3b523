"""Damaged and forged model files and cache entries.

``python -m tools.damage.model_files --count 10000 [--cache 2000]``. A file is one of a few models (one entry, several
that share weights, open sizes, native code, the first format). One kind of damage leaves digests unchanged: flips,
cuts, bytes appended, dropped, overwritten or repeated, exchanged sections. The other kind repairs the digests: lengths
and offsets in the table, digests of another file, names of sections, manifests and graphs with other contents. The
first kind and wrong tables must be refused; a file with right digests must be refused or be a callable model. A damaged
cache entry must never be used: the program is built again, with one warning. Child processes read the files, so that a
crash is noticed.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import graphc as gc
from graphc import nn
from graphc.base.errors import GraphcError
from graphc.cli.arrays import random_array
from graphc.compiler import cache
from graphc.compiler.compile import compile_graph, load_compiled
from graphc.files import container
from graphc.ir.graph.parse import parse_graph
from graphc.models.file_report import report_of
from graphc.models.model_file import load
from graphc.nn.functional import cross_entropy
from tools.damage.forked import finish, fork
from tools.progress import progress_bar

ROOT = Path(__file__).parents[2]
OLD = ROOT / "tests" / "compatibility" / "files"
CHUNK = 50
"""Files that one process reads."""
MOST_MEMORY = 1 << 31
"""Bytes of address space that reading and running a file may add."""
MOST_SECONDS = 20
REFUSED, ANOTHER, ACCEPTED, FAILED, CRASHED = "refused", "another model", "ACCEPTED", "FAILED", "CRASHED"
_HEADER, _ENTRY = struct.Struct("<8sIIQ8x32s"), struct.Struct("<16sQQ32s")
_WHOLE = (0, 1, -1, 63, 64, 1 << 20, 1 << 31, 1 << 40, (1 << 63) - 1, -(1 << 63), 1 << 70)
_TEXTS = ("", "x", "0.weight", "forward", "train_step", "a" * 5000, "f32", "f99", "weights", "é\0", "..", "relu")
GRAPH = """
graph @net(%x: f32[7,24]) -> (f32[7,7], f32[7]) {
  %p = matmul(%x, %x) {transpose_b=true} : f32[7,7]
  %y = maximum(%p, f32(0.0)) : f32[7,7]
  %s = sum(%y) {axes=[1]} : f32[7]
  return %y, %s
}
"""


class FileOutcome(NamedTuple):
    """Outcome of a file."""

    kind: str
    text: str = ""


Damage = Callable[[random.Random, bytes, Sequence[bytes]], bytes]
"""Function of a random generator, a file and others that returns a damaged file."""


# ---- damage below the digests


def _flip(chance: random.Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    damaged = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 8, 64))):
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def _cut(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    return data[: chance.randrange(len(data))]


def _append(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    return data + chance.choice((b"\0", bytes(64), chance.randbytes(100), chance.choice(others)))


def _drop(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    begin = chance.randrange(len(data))
    return data[:begin] + data[begin + chance.choice((1, 64, chance.randrange(1, 500))) :]


def _overwrite(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    begin, length = chance.randrange(len(data)), chance.choice((1, 32, 64, 512))
    new = chance.choice((bytes(length), b"\xff" * length, chance.randbytes(length)))
    return data[:begin] + new[: len(data) - begin] + data[begin + length :]


def _splice(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return a part of this file or of another one in the place of a part of the same length, or between two halves."""
    source = chance.choice((data, *others))
    begin, length = chance.randrange(len(source)), chance.choice((16, 64, 256))
    offset = chance.randrange(len(data))
    return data[:offset] + source[begin : begin + length] + data[offset + length * chance.randrange(2) :]


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


def _places(value: Any, positions: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return every part of a JSON value as its container and its place there."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        positions.append((value, key))
        _places(child, positions)
    return positions


def _manifest(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return a manifest that lies, in one to three places."""
    table, sections = _parts(data)
    manifest = json.loads(sections[0])
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        container_of, key = chance.choice(_places(manifest, []))
        old = container_of[key]
        kind = chance.randrange(5)
        if kind == 0:
            del container_of[key]
        elif kind == 1 and isinstance(container_of, list):
            container_of.insert(0, json.loads(json.dumps(old)))
        elif kind == 2:
            container, other = chance.choice(_places(manifest, []))
            container_of[key] = json.loads(json.dumps(container[other]))
        elif isinstance(old, bool) or not isinstance(old, (int, str)):
            container_of[key] = chance.choice((None, [], {}, True, 1.5, [[]] * 70))
        else:
            container_of[key] = chance.choice(_WHOLE if isinstance(old, int) else _TEXTS)
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


DAMAGES: dict[str, tuple[Damage, int]] = {
    "flip": (_flip, 6),
    "cut": (_cut, 3),
    "append": (_append, 1),
    "drop": (_drop, 2),
    "overwrite": (_overwrite, 2),
    "splice": (_splice, 2),
    "swap": (_swap, 2),
    "table": (_table, 4),
    "names": (_names, 2),
    "section": (_section, 2),
    "manifest": (_manifest, 4),
    "graph": (_graph, 2),
}
"""Damage functions by name, with the weight with which each is drawn."""
FORGED = frozenset({"names", "section", "manifest", "graph"})
"""Damages with right digests. Their outcome may be a model, since digests do not tell the author."""


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
    old = sorted(OLD.rglob("*.gcm"))
    if old:
        (folder / "old.gcm").write_bytes(old[0].read_bytes())


def make_case(number: int, seed: int, files: Sequence[bytes]) -> tuple[str, bytes]:
    """Return the name of a damage, and the damaged file."""
    chance = random.Random(seed * 1_000_000 + number)
    names = [name for name, (_, share) in DAMAGES.items() for _ in range(share)]
    data = chance.choice(files)
    others = [other for other in files if other is not data]
    while True:
        name = chance.choice(names)
        damaged = DAMAGES[name][0](chance, data, others)
        if damaged != data:
            return name, damaged


def judge(name: str, path: Path) -> FileOutcome:
    """Read a file, and call the entries of the model if there is one."""
    forged = name in FORGED
    try:
        with _limited():
            report = report_of(path)
            model = load(path, trust=not forged)
    except GraphcError as error:
        return FileOutcome(REFUSED, str(error)[:100])
    except Exception as error:
        return FileOutcome(FAILED, f"{type(error).__name__}: {error}")
    if not forged:
        return FileOutcome(ACCEPTED, "it was loaded")
    # NOTE: the first call reads the graph of an entry, a request for gradients those of its derivatives.
    outcome = _called(model)
    return outcome if report.good or outcome.kind == FAILED else FileOutcome(REFUSED, f"verify: {report.problem}"[:100])


def _called(model: Any) -> FileOutcome:
    try:
        with _limited():
            for entry in model.entries.values():
                entry.run([random_array(spec, i) for i, spec in enumerate(entry.inputs)])
    except (GraphcError, MemoryError) as error:
        return FileOutcome(REFUSED, f"called: {error}"[:100])
    except Exception as error:
        return FileOutcome(FAILED, f"called: {type(error).__name__}: {error}")
    return FileOutcome(ANOTHER)


class _limited:
    """Limit the process to MOST_MEMORY beyond its present size, and to MOST_SECONDS."""

    def __enter__(self) -> None:
        self._before = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MOST_MEMORY, self._before[1]))
        signal.alarm(MOST_SECONDS)

    def __exit__(self, *_: object) -> None:
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_AS, self._before)


# ---- entries of the cache

_BELOW = ("flip", "cut", "append", "drop", "overwrite", "splice", "swap", "table")


def make_entry(folder: Path) -> None:
    """Write an entry of the cache, and the results of its program."""
    os.environ |= {"GRAPHC_CACHE": "on", "GRAPHC_CACHE_DIR": str(folder / "cache")}
    arrays = load_compiled(compile_graph(parse_graph(GRAPH))).run([_x()])
    np.savez(folder / "expected.npz", *arrays)


def _x() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((7, 24)).astype(np.float32)


def make_entry_case(number: int, seed: int, files: Sequence[bytes]) -> tuple[str, bytes]:
    """Return the name of a damage, and the damaged entry; ``files`` are the entry and model files."""
    chance = random.Random(seed * 1_000_000 + number)
    while True:
        name = chance.choice(_BELOW)
        damaged = DAMAGES[name][0](chance, files[0], files[1:])
        if damaged != files[0]:
            return name, damaged


def judge_entry(name: str, path: Path) -> FileOutcome:
    """Compile the program of a damaged entry: it must be built again, with one warning, and compute the same."""
    folder = path.parents[1]
    os.environ |= {"GRAPHC_CACHE": "on", "GRAPHC_CACHE_DIR": str(folder / "cache")}
    cache._warned.clear()
    try:
        with warnings.catch_warnings(record=True) as said, _limited():
            warnings.simplefilter("always")
            compiled = compile_graph(parse_graph(GRAPH))
            results = load_compiled(compiled).run([_x()])
    except Exception as error:
        return FileOutcome(FAILED, f"{type(error).__name__}: {error}")
    if "cache" in compiled.stages.seconds:
        return FileOutcome(ACCEPTED, "it was used")
    with np.load(folder / "expected.npz") as expected:
        if not all(np.array_equal(r, expected[f"arr_{i}"]) for i, r in enumerate(results)):
            return FileOutcome(FAILED, "other numbers")
    if [w.category for w in said] != [RuntimeWarning]:
        return FileOutcome(FAILED, f"{len(said)} warnings")
    return FileOutcome(REFUSED)


# ---- processes

Case = Callable[[int, int, Sequence[bytes]], tuple[str, bytes]]
Judge = Callable[[str, Path], FileOutcome]


def run(
    count: int, seed: int, files: Sequence[bytes], path: Path, case: Case, judged: Judge
) -> list[tuple[str, FileOutcome]]:
    """Return the damage and the outcome of each of ``count`` files, which are written to ``path``."""
    outcomes: list[tuple[str, FileOutcome]] = []
    log, lines = path.with_suffix(".log"), path.with_suffix(".outcomes")
    with progress_bar(count, "files") as bar:
        while len(outcomes) < count:
            begin, end = len(outcomes), min(len(outcomes) + CHUNK, count)
            lines.unlink(missing_ok=True)
            process = fork(lambda begin=begin, end=end: _judge_some(begin, end, seed, files, path, case, judged), log)
            _, status = os.waitpid(process, 0)
            results = lines.read_text().splitlines() if lines.exists() else []
            outcomes += [(name, FileOutcome(*rest)) for name, *rest in map(json.loads, results)]
            if len(outcomes) < end:
                name = case(len(outcomes), seed, files)[0]
                outcomes.append((name, FileOutcome(CRASHED, f"status {status}: {log.read_text()[-200:]}")))
            bar.step(len(outcomes) - begin)
    return outcomes


def _judge_some(begin: int, end: int, seed: int, files: Sequence[bytes], path: Path, case: Case, judged: Judge) -> None:
    with open(path.with_suffix(".outcomes"), "w", encoding="utf-8") as lines:
        for number in range(begin, end):
            name, data = case(number, seed, files)
            path.write_bytes(data)
            lines.write(json.dumps([name, *judged(name, path)]) + "\n")
            lines.flush()


def run_files(count: int, seed: int) -> list[tuple[str, FileOutcome]]:
    """Judge ``count`` damaged model files; return the damage and the outcome of each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["GRAPHC_CACHE"] = "off"
        problem = finish(lambda: make_files(folder), folder / "log")
        assert not problem, problem
        files = [path.read_bytes() for path in sorted(folder.glob("*.gcm"))]
        (folder / "work").mkdir()
        return run(count, seed, files, folder / "work" / "net.gcm", make_case, judge)


def run_entries(count: int, seed: int) -> list[tuple[str, FileOutcome]]:
    """Judge ``count`` damaged cache entries; return the damage and the outcome of each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for make in (make_entry, make_files):
            problem = finish(lambda make=make: make(folder), folder / "log")
            assert not problem, problem
        (path,) = (folder / "cache").glob(f"*{cache.SUFFIX}")
        files = [path.read_bytes(), *(p.read_bytes() for p in sorted(folder.glob("*.gcm")))]
        return run(count, seed, files, path, make_entry_case, judge_entry)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="number of damaged model files")
    parser.add_argument("--cache", type=int, default=0, metavar="N", help="number of damaged cache entries")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    bad = False
    for what, count, runs in (("file", options.count, run_files), ("entry", options.cache, run_entries)):
        start_time = time.monotonic()
        outcomes = runs(count, options.seed) if count else []
        for number, (name, outcome) in enumerate(outcomes):
            if outcome.kind not in (REFUSED, ANOTHER):
                bad = True
                print(f"{what} {number}, {name}: {outcome.kind}: {outcome.text[:300]}")
        kinds = collections.Counter((name, outcome.kind) for name, outcome in outcomes)
        for (damage, kind), number in sorted(kinds.items()):
            print(f"{what:6} {damage:10} {kind:14} {number}")
        if outcomes:
            print(f"{len(outcomes)} {what}: {time.monotonic() - start_time:.0f} s")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
