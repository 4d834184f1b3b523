"""Cache folders that are only read: their order, their owner, and keys that survive an installation elsewhere."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from graphc.compiler import cache
from graphc.compiler.cache import Cache, Question
from tests.compiler.test_cache import KEY, TARGET, entry


def filled(folder: Path) -> Cache:
    disk = Cache(folder, 1 << 20)
    disk.store(KEY, entry())
    disk.choose(TARGET, {"nest": "block"})
    disk.ask("cd" * 32, Question("why", "le", 1, 2, ()))
    return disk


def contents(folder: Path) -> dict[str, tuple[int, int, int]]:
    return {str(p): (s.st_mode, s.st_size, s.st_mtime_ns) for p in folder.rglob("*") for s in [p.stat()]}


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """Yield a filled folder that nobody may write to."""
    folder = tmp_path / "shared"
    filled(folder)
    for path in folder.iterdir():
        path.chmod(0o555 if path.is_dir() else 0o444)
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)


def test_shared_folders_are_read_after_the_own_one_and_never_written(shared: Path, tmp_path: Path):
    before = contents(shared)
    disk = Cache(tmp_path / "own", 1 << 20, [tmp_path / "missing", shared])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert disk.get(KEY, TARGET, entry)[1] and disk.choices(TARGET) == {"nest": "block"}
        assert disk.question("cd" * 32) == Question("why", "le", 1, 2, ())
        assert not disk.get("ef" * 32, TARGET, entry)[1] and disk.get("ef" * 32, TARGET, entry)[1]
        disk.choose(TARGET, {"nest": "other"})
    assert disk.choices(TARGET) == {"nest": "other"} and disk.clear() == 1
    assert contents(shared) == before and disk.get(KEY, TARGET, entry)[1]


def test_damaged_files_of_shared_folders_are_reported_and_stay(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(cache, "_warned", threading.Event())
    path = Cache(shared, 0).path(KEY)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1])
    disk = Cache(tmp_path / "own", 1 << 20, [shared])
    with pytest.warns(RuntimeWarning, match="the cache of compiled programs does not work"):
        assert not disk.get(KEY, TARGET, entry)[1]
    assert path.exists() and Cache(tmp_path / "own", 1 << 20, [shared]).get(KEY, TARGET, entry)[1]


@pytest.mark.parametrize(("owner", "mode", "is_used"), [(0, 0o755, True), (7, 0o755, False), (0, 0o777, False)])
def test_shared_folders_belong_to_the_user_or_to_root(
    owner: int, mode: int, is_used: bool, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    shared.chmod(mode)
    real = os.lstat

    def lstat(path: Any) -> Any:
        status = real(path)
        is_shared = shared in (path, *Path(path).parents)
        return SimpleNamespace(st_mode=status.st_mode, st_uid=owner if is_shared else os.geteuid())

    monkeypatch.setattr(cache.os, "lstat", lstat)
    monkeypatch.setattr(cache.os, "geteuid", lambda: 5)
    monkeypatch.setattr(cache, "check_parents", lambda folder: None)
    monkeypatch.setattr(cache, "_warned", threading.Event())
    cache._warned.set()
    assert (Cache(tmp_path / "own", 1 << 20, [shared]).load(KEY, TARGET) is not None) == is_used


def test_folders_are_separated_as_in_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", f"{tmp_path}/a:{tmp_path}/b:{tmp_path}/c")
    disk = cache.current()
    assert disk is not None and disk.folder == tmp_path / "a"
    assert disk.shared == (tmp_path / "b", tmp_path / "c")


def test_keys_of_an_installed_wheel_depend_on_its_record_and_not_on_times(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    record, file = (
        tmp_path / "graphc_compiler-1.dist-info" / "RECORD",
        tmp_path / "graphc" / "base" / "config.py",
    )
    for path, text in ((file, "a = 1"), (record, "graphc/base/config.py,sha256=abc,5\nbin/graphc,sha256=d,1\n")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    monkeypatch.setattr(cache.config, "__file__", str(file))
    first = cache._source_digest()[0]
    for name, modified in ((file, 1_000_000_000), (record, 2_000_000_000)):
        os.utime(name, ns=(modified, modified))
    record.write_text(record.read_text().replace("=d", "=e"))
    os.utime(record, ns=(2_000_000_000, 2_000_000_000))
    assert cache._source_digest()[0] == first
    os.utime(file, ns=(9_000_000_000, 9_000_000_000))
    edited = cache._source_digest()[0]
    record.write_text(record.read_text().replace("abc", "abd"))
    assert len({first, edited, cache._source_digest()[0]}) == 3


def test_sources_that_change_while_the_process_runs_give_keys_of_no_other_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "base").mkdir()
    monkeypatch.setattr(cache.config, "__file__", str(tmp_path / "base" / "config.py"))
    compiler = cache._compiler.__wrapped__
    (tmp_path / "base" / "config.py").write_text("a = 1")
    assert compiler() != compiler(), "the file is younger than the process"
    monkeypatch.setattr(cache, "_IMPORTED", time.time_ns() + 2 * cache._CLOCK_STEP)
    assert compiler() == compiler() == cache._source_digest()[0]
    (tmp_path / "base" / "config.py").write_text("a = 2")
    os.utime(tmp_path / "base" / "config.py", ns=(1, 1))
    monkeypatch.setattr(cache, "_IMPORTED", time.time_ns() - 10**9)
    assert compiler() != compiler(), "an old time of change does not hide a new content"
