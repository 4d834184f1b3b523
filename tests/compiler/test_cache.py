"""The disk cache: hits, keys, damage, foreign folders, failing disks, limits, many processes, and being killed."""

from __future__ import annotations

import errno
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphc.compiler import cache as module
from graphc.compiler import compile as compiling
from graphc.compiler.cache import Cache, CacheEntry, current, key_of
from graphc.compiler.compile import compile_graph, load_compiled
from graphc.errors import CompileError
from graphc.files import container
from graphc.files.manifest import BufferSpec, Manifest, TargetSpec
from tests.compiler.graphs import mlp

ROOT = Path(__file__).parents[2]
TARGET = TargetSpec("x86_64-unknown-linux-gnu", "some-cpu", ("avx2", "sse2"))
KEY = "ab" * 32


@pytest.fixture
def disk(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache", 1 << 20)


@pytest.fixture(autouse=True)
def fresh_warning() -> Iterator[None]:
    module._warned.clear()
    yield
    module._warned.clear()


def entry(size: int = 100, fill: int = 1) -> CacheEntry:
    buffers = (BufferSpec("x", "f32", (2,), "input"), BufferSpec("arena", "u8", (0,), "arena"))
    manifest = Manifest("m", "entry", buffers, 0, size, TARGET, module.versions(), 17)
    return CacheEntry(manifest, bytes([fill]) * 64, np.full(size, fill, np.uint8))


def same(a: CacheEntry | None, b: CacheEntry) -> bool:
    return (
        a is not None and (a.manifest, a.object) == (b.manifest, b.object) and np.array_equal(a.constants, b.constants)
    )


def key(number: int) -> str:
    return f"{number:064x}"


def refuse() -> CacheEntry:
    raise AssertionError("it was built")


def one_warning(action: Callable[[], Any]) -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
        action()
    assert [w.category for w in caught] == [RuntimeWarning]
    return str(caught[0].message)


def no_warning(action: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return action()


def test_what_was_stored_is_found(disk: Cache):
    built, result = no_warning(lambda: disk.get(KEY, TARGET, entry))
    assert not result and same(built, entry())
    again, result = no_warning(lambda: Cache(disk.folder, disk.limit).get(KEY, TARGET, refuse))
    assert result and same(again, entry())
    assert disk.load("cd" * 32, TARGET) is None
    assert stat.S_IMODE(disk.folder.stat().st_mode) == 0o700
    assert [p.name for p in disk.folder.iterdir() if p.is_file()] == [f"{KEY}.program"]


def test_a_failing_build_leaves_nothing_behind(disk: Cache):
    def fail() -> CacheEntry:
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            disk.get(KEY, TARGET, fail)
    assert [p for p in disk.folder.iterdir() if p.is_file()] == []
    assert disk.get(KEY, TARGET, entry)[1] is False


# ---- keys


def test_keys_depend_on_everything(monkeypatch: pytest.MonkeyPatch):
    parts = ["text", b"bytes", np.arange(4.0)]
    keys = {
        key_of(TARGET, parts),
        key_of(TARGET, parts[:2]),
        key_of(TARGET, ["textbytes", parts[2]]),
        key_of(TARGET, ["text", b"bytes", np.arange(4.0)[::-1]]),
        key_of(replace(TARGET, cpu="other"), parts),
        key_of(replace(TARGET, features=("sse2",)), parts),
        key_of(replace(TARGET, triple="aarch64-unknown-linux-gnu"), parts),
    }
    assert len(keys) == 7
    assert key_of(TARGET, ["text", b"bytes", np.arange(4.0)]) in keys
    monkeypatch.setattr(module, "_NO_CODE", module._NO_CODE - {"debug"})
    with_option = key_of(TARGET, parts)
    monkeypatch.setenv("GRAPHC_DEBUG", "1")
    assert len(keys | {with_option, key_of(TARGET, parts)}) == 9
    monkeypatch.setattr(module, "_compiler", lambda: b"another compiler")
    assert len(keys | {with_option, key_of(TARGET, parts)}) == 9


def test_options_that_change_no_code_do_not_change_keys(monkeypatch: pytest.MonkeyPatch):
    before = key_of(TARGET, ["text"])
    for name, value in {"GRAPHC_DEBUG": "1", "GRAPHC_CACHE_SIZE": "5M", "GRAPHC_LOGS": "info"}.items():
        monkeypatch.setenv(name, value)
    assert key_of(TARGET, ["text"]) == before


def test_the_compiler_itself_is_part_of_the_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(module.config, "__file__", str(tmp_path / "config.py"))
    before = module._source_digest()[0]
    (tmp_path / "passes").mkdir()
    file = tmp_path / "passes" / "fold.py"
    file.write_text("a = 1")
    first = module._source_digest()[0]
    os.utime(file, ns=(1, 1))
    second = module._source_digest()[0]
    monkeypatch.setattr(module, "VERSION", "9")
    assert len({before, first, second, module._source_digest()[0]}) == 4


@pytest.mark.parametrize(
    "variables,used",
    [
        ({"GRAPHC_CACHE": "on"}, True),
        ({"GRAPHC_CACHE": "off"}, False),
        ({"GRAPHC_CACHE": "on", "GRAPHC_DUMP": "somewhere"}, False),
        ({"GRAPHC_CACHE": "on", "GRAPHC_PRINT_AFTER": "fold"}, False),
        ({"GRAPHC_CACHE": "on", "GRAPHC_VERIFY": "pass"}, False),
    ],
)
def test_when_it_is_used(variables: dict[str, str], used: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("GRAPHC_CACHE_SIZE", "3M")
    result = current()
    assert (result is not None) is used
    if result is not None:
        assert (result.folder, result.limit) == (tmp_path, 3 << 20) and current() is result


# ---- what cannot be trusted


def test_damaged_entries_are_built_again(disk: Cache):
    disk.store(KEY, entry())
    path = disk.path(KEY)
    good = path.read_bytes()
    rng = random.Random(0)
    accepted = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(400):
            bad = bytearray(good)
            if number % 3 == 0:
                bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
            elif number % 3 == 1:
                bad = bad[: rng.randrange(len(bad))]
            else:
                start = rng.randrange(len(bad))
                bad[start : start + 32] = rng.randbytes(32)
            path.write_bytes(bad)
            accepted += disk.load(KEY, TARGET) is not None
            assert not path.exists()
    assert accepted == 0
    path.write_bytes(b"damaged")
    module._warned.clear()
    with pytest.warns(RuntimeWarning, match="not a graphc model file"):
        assert disk.get(KEY, TARGET, entry)[1] is False
    assert same(disk.load(KEY, TARGET), entry())


def test_entries_of_other_machines_and_kinds_are_built_again(disk: Cache):
    def store_sections(manifest: bytes, *names: str) -> None:
        rest: dict[str, list[Any]] = {name: [b"x" * 100] for name in names}
        container.write_sections(disk.path(KEY), {"key": [KEY.encode()], "manifest": [manifest], **rest})

    disk.store(KEY, entry())
    other = replace(TARGET, features=(*TARGET.features, "avx512f"))
    assert "another machine" in one_warning(lambda: disk.load(KEY, other))
    text, usual = module.to_json(entry().manifest), ("constants", "object")
    for manifest, names in {
        text: ("constants", "code"),
        **dict.fromkeys((b"{}", b"["), usual),
        text.replace(b'"constants":100', b'"constants":99'): usual,
    }.items():
        module._warned.clear()
        store_sections(manifest, *names)
        one_warning(lambda: disk.load(KEY, TARGET))
        assert not disk.path(KEY).exists()


def fill(folder: Path) -> None:
    Cache(folder, 1 << 20).store(KEY, entry())


def make_link(folder: Path) -> None:
    real = folder.with_name("real")
    fill(real)
    folder.symlink_to(real)


def make_file(folder: Path) -> None:
    folder.write_text("")


def make_writable(folder: Path) -> None:
    fill(folder)
    folder.chmod(0o770)


def make_link_entry(folder: Path) -> None:
    fill(folder)
    path = folder / f"{KEY}.program"
    path.rename(folder / "elsewhere")
    path.symlink_to(folder / "elsewhere")


def make_writable_entry(folder: Path) -> None:
    fill(folder)
    (folder / f"{KEY}.program").chmod(0o666)


def make_folder_entry(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    (folder / f"{KEY}.program").mkdir()


def make_open_parent(folder: Path) -> None:
    fill(folder)
    folder.parent.chmod(0o777)


@pytest.mark.parametrize(
    "make",
    [
        *(make_link, make_file, make_writable, make_link_entry, make_writable_entry, make_folder_entry),
        make_open_parent,
    ],
)
def test_what_others_could_have_made_is_not_used(make: Callable[[Path], None], tmp_path: Path):
    folder = tmp_path / "cache"
    make(folder)
    disk = Cache(folder, 1 << 20)

    def get() -> None:
        assert same(disk.get(KEY, TARGET, entry)[0], entry())

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert disk.load(KEY, TARGET) is None
        get()
        get()
    assert len(caught) == 1 and "GRAPHC_CACHE=off" in str(caught[0].message)


def test_parents_that_others_write_to_are_taken_when_sticky(tmp_path: Path):
    tmp_path.chmod(0o1777)
    disk = Cache(tmp_path / "cache", 1 << 20)
    disk.store(KEY, entry())
    assert disk.load(KEY, TARGET) is not None


def test_locks_in_a_linked_folder_are_not_taken(disk: Cache, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    disk.folder.mkdir(mode=0o700)
    (disk.folder / module.LOCKS).symlink_to(elsewhere)
    assert "is a link" in one_warning(lambda: disk.get(KEY, TARGET, entry))
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize("what", ["folder", "entry"])
def test_what_belongs_to_another_user_is_not_used(what: str, disk: Cache, monkeypatch: pytest.MonkeyPatch):
    disk.store(KEY, entry())
    place = disk.folder if what == "folder" else disk.path(KEY)
    real = os.lstat

    def lstat(path: Any) -> Any:
        status = real(path)
        if Path(path) != place:
            return status
        return type("Status", (), {"st_mode": status.st_mode, "st_uid": os.geteuid() + 1})

    monkeypatch.setattr(module.os, "lstat", lstat)
    other = Cache(disk.folder, disk.limit)
    assert "belongs to another user" in one_warning(lambda: other.load(KEY, TARGET))


# ---- disks that fail


def failing(number: int) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT, errno.EIO])
def test_a_disk_that_cannot_be_written(number: int, disk: Cache, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(container.os, "link", failing(number))

    def get() -> None:
        assert same(disk.get(KEY, TARGET, entry)[0], entry())

    assert os.strerror(number) in one_warning(get)
    assert [p for p in disk.folder.iterdir() if p.is_file()] == []


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_folder_that_cannot_be_made(number: int, disk: Cache, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Path, "mkdir", failing(number))

    def get() -> None:
        assert same(disk.get(KEY, TARGET, entry)[0], entry())

    assert os.strerror(number) in one_warning(get)


def test_a_read_only_cache_is_read(disk: Cache, monkeypatch: pytest.MonkeyPatch):
    disk.store(KEY, entry())
    for name in ("utime", "replace", "unlink", "mkdir"):
        monkeypatch.setattr(module.os, name, failing(errno.EROFS))
    assert no_warning(lambda: Cache(disk.folder, disk.limit).get(KEY, TARGET, refuse))[1]


def test_a_full_disk(tmp_path: Path):
    """A real one, where it can be mounted."""
    folder = tmp_path / "small"
    folder.mkdir(mode=0o700)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        disk = Cache(folder, 1 << 30)
        assert not disk.get(KEY, TARGET, lambda: entry(10_000))[1]
        big = key(1)
        message = one_warning(lambda: disk.get(big, TARGET, lambda: entry(200_000)))
        assert os.strerror(errno.ENOSPC) in message
        assert same(no_warning(lambda: disk.get(KEY, TARGET, refuse))[0], entry(10_000))
        assert {p.name for p in folder.iterdir() if p.is_file()} == {f"{KEY}.program"}
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_home_that_does_not_exist(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", "/dev/null/nobody")
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", "~/.cache/graphc")
    module._open.cache_clear()
    try:
        disk = current()
        assert disk is not None
        with pytest.warns(RuntimeWarning, match="/dev/null"):
            assert same(disk.get(KEY, TARGET, entry)[0], entry())
    finally:
        module._open.cache_clear()


# ---- limits


def test_the_least_recently_used_go_first(tmp_path: Path):
    size = 10_000
    Cache(tmp_path / "one", 10 * size).store(key(0), entry(size, 0))
    stored = Cache(tmp_path / "one", 10 * size).usage().bytes
    # Five fit, and nine tenths of that hold four.
    disk = Cache(tmp_path / "cache", 5 * stored + stored // 2)
    for number in range(4):
        disk.store(key(number), entry(size, number))
        os.utime(disk.path(key(number)), (1000 + number, 1000 + number))
    assert disk.load(key(0), TARGET) is not None
    for number in (4, 5):
        disk.store(key(number), entry(size, number))
    left = {number for number in range(6) if disk.path(key(number)).exists()}
    assert left == {0, 3, 4, 5}
    assert disk.usage().bytes <= disk.limit and disk.usage().entries == len(left)
    for number in left:
        assert same(disk.load(key(number), TARGET), entry(size, number))


def test_what_is_larger_than_the_cache_is_not_kept(tmp_path: Path):
    disk = Cache(tmp_path / "cache", 1000)
    assert not no_warning(lambda: disk.get(KEY, TARGET, lambda: entry(2000)))[1]
    assert not disk.path(KEY).exists()


def test_what_dead_writers_left_is_removed(disk: Cache):
    disk.store(KEY, entry())
    old, new = disk.folder / ".a.0123.tmp", disk.folder / ".b.4567.tmp"
    for path in (old, new):
        path.write_text("half")
    os.utime(old, (1000, 1000))
    disk.store(key(1), entry())
    assert not old.exists() and new.exists()


def test_clear_and_usage(disk: Cache):
    assert (disk.clear(), disk.usage().entries) == (0, 0)
    for number in range(3):
        disk.store(key(number), entry())
    usage = disk.usage()
    assert (usage.entries, usage.folder, usage.limit) == (3, str(disk.folder), 1 << 20)
    assert usage.bytes == sum(disk.path(key(n)).stat().st_size for n in range(3))
    assert disk.clear() == 3 and disk.usage().entries == 0


# ---- several at once


def test_threads_build_a_key_once(disk: Cache):
    built: list[int] = []

    def build() -> CacheEntry:
        built.append(1)
        time.sleep(0.05)
        return entry()

    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(disk.get(KEY, TARGET, build)[0])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert built == [1] and len(results) == 8 and all(same(r, entry()) for r in results)


def test_waiting_for_another_builder_has_an_end(disk: Cache, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "LOCK_SECONDS", 0.05)
    with disk._lock(KEY):
        assert not disk.get(KEY, TARGET, entry)[1]


def test_a_file_system_without_locks(disk: Cache, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module.fcntl, "flock", failing(errno.ENOLCK))
    assert not no_warning(lambda: disk.get(KEY, TARGET, entry))[1]
    assert no_warning(lambda: disk.get(KEY, TARGET, refuse))[1]


WORKER = """
import sys
from graphc.compiler.compile import compile_graph, load_compiled
from tests.compiler.graphs import mlp
sys.stdin.readline()
compiled = compile_graph(mlp())
load_compiled(compiled)
print("cache" in compiled.stages.seconds)
"""


def start(code: str, folder: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"GRAPHC_CACHE": "on", "GRAPHC_CACHE_DIR": str(folder), "PYTHONWARNINGS": "error"}
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=environment, text=True, **pipes)


@pytest.mark.slow
def test_sixteen_processes_compile_once(tmp_path: Path):
    workers = [start(WORKER, tmp_path / "cache") for _ in range(16)]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    results = []
    for worker in workers:
        out, error = worker.communicate(timeout=200)
        assert worker.returncode == 0, error
        results.append(out.strip())
    assert sorted(results) == ["False"] + ["True"] * 15


WRITER = """
import sys, itertools
from pathlib import Path
from tests.compiler.test_cache import Cache, entry, key
disk = Cache(Path(sys.argv[1]), 1 << 30)
print("ready", flush=True)
for number in itertools.count():
    disk.store(key(number % 4), entry(300_000, number % 251))
"""


def test_being_killed_leaves_whole_entries(tmp_path: Path):
    folder = tmp_path / "cache"
    rng = random.Random(1)
    for _ in range(6):
        command = [sys.executable, "-c", WRITER, str(folder)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
            time.sleep(rng.uniform(0.02, 0.2))
            os.kill(writer.pid, signal.SIGKILL)
        disk = Cache(folder, 1 << 30)
        for number in range(4):
            if disk.path(key(number)).exists():
                read = no_warning(partial(disk.load, key(number), TARGET))
                assert same(read, entry(300_000, int(read.constants[0])))
        entries = disk.usage().entries
    assert entries == 4


# ---- with the compiler


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_graph_is_compiled_once(on: Path, monkeypatch: pytest.MonkeyPatch):
    first = compile_graph(mlp())
    monkeypatch.setattr(compiling, "compile_stages", lambda _: refuse())
    second = compile_graph(mlp())
    assert (second.manifest, second.object) == (first.manifest, first.object)
    assert np.array_equal(second.constants, first.constants)
    assert list(second.stages.seconds) == ["cache"] and "cache" not in first.stages.seconds
    rng = np.random.default_rng(0)
    programs = [load_compiled(c) for c in (first, second)]
    arrays = [rng.normal(size=b.shape).astype(np.float32) for b in (*programs[0].inputs, *programs[0].bound)]
    split = len(programs[0].inputs)
    results = [p.run(arrays[:split], tuple(arrays[split:])) for p in programs]
    assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))
    assert second.stages.text("optimized") == first.stages.text("optimized")


def test_code_with_features_that_this_machine_lacks_never_runs(on: Path):
    compiled = compile_graph(mlp())
    target = replace(compiled.manifest.target, features=(*compiled.manifest.target.features, "imaginary"))
    foreign = replace(compiled.manifest, target=target)
    for path in on.glob("*.program"):
        Cache(on, 1 << 30).store(path.stem, CacheEntry(foreign, compiled.object, compiled.constants))
    with pytest.warns(RuntimeWarning, match="another machine"):
        again = compile_graph(mlp())
    assert again.manifest == compiled.manifest
    with pytest.raises(CompileError, match="imaginary"):
        load_compiled(CacheEntry(foreign, compiled.object, compiled.constants))


# ---- choices


def test_choices_are_kept_by_target(disk: Cache):
    other = replace(TARGET, cpu="another-cpu")
    assert disk.choices(TARGET) == {}
    disk.choose(TARGET, {"a": "1x2", "b": "3x4"})
    disk.choose(other, {"a": "5x6"})
    disk.choose(TARGET, {"a": None, "c": "7x8"})
    assert disk.choices(TARGET) == {"b": "3x4", "c": "7x8"} and disk.choices(other) == {"a": "5x6"}
    disk.clear()
    assert disk.choices(TARGET) == {}


def test_damaged_choices_are_removed(disk: Cache):
    disk.choose(TARGET, {"a": "1x2"})
    (path,) = disk.folder.glob("*.tuned")
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    assert "damaged" in one_warning(lambda: disk.choices(TARGET))
    assert disk.choices(TARGET) == {} and not path.exists()


def test_choices_of_others_are_not_used(disk: Cache):
    disk.choose(TARGET, {"a": "1x2"})
    (path,) = disk.folder.glob("*.tuned")
    path.chmod(0o666)
    assert "can be written by other users" in one_warning(lambda: disk.choices(TARGET))
