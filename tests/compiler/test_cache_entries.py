"""Cache entries: order of last use, removal of old ones, folders that others can write to."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from graphc.codegen.machine.target import host_target
from graphc.compiler import cache
from graphc.compiler.ready import target_spec
from graphc.files.manifest import Manifest


def test_entries_are_listed_and_those_removed_that_were_not_used(tmp_path: Path):
    disk = cache.Cache(tmp_path, 1 << 20)
    assert disk.entries() == [] and disk.clear(1.0) == 0
    for name, age in (("old", 1000), ("new", 0)):
        disk.path(name).write_bytes(b"x" * 3)
        os.utime(disk.path(name), (time.time() - age, time.time() - age))
    (tmp_path / f"machine{cache.TUNED}").write_bytes(b"")
    assert [(key, size) for key, size, _ in disk.entries()] == [("new", 3), ("old", 3)]
    assert disk.clear(500.0) == 1 and [key for key, _, _ in disk.entries()] == ["new"]
    assert (tmp_path / f"machine{cache.TUNED}").exists()
    assert disk.clear() == 1 and not list(tmp_path.glob("*.*"))


def test_a_folder_that_others_may_write_to_is_a_fault(tmp_path: Path):
    assert cache.Cache(tmp_path / "missing", 1).fault() == "" and not [*(tmp_path / "missing").iterdir()]
    folder = tmp_path / "programs"
    folder.mkdir(mode=0o700)
    assert cache.Cache(folder, 1).fault() == ""
    folder.chmod(0o777)
    assert "can be written by other users" in cache.Cache(folder, 1).fault()


def test_an_entry_under_the_name_of_another_one_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cache, "_warned", threading.Event())
    target = target_spec(host_target())
    disk = cache.Cache(tmp_path, 1 << 20)
    disk.store("one", cache.CacheEntry(Manifest("m", "entry", (), 0, 0, target), b"code", np.empty(0, np.uint8)))
    assert disk.load("one", target) is not None
    disk.path("other").write_bytes(disk.path("one").read_bytes())
    with pytest.warns(RuntimeWarning, match="the entry belongs to another key"):
        assert disk.load("other", target) is None
    assert not disk.path("other").exists() and disk.load("one", target) is not None


def test_a_folder_that_cannot_be_written_is_a_fault(tmp_path: Path):
    file = tmp_path / "file"
    file.touch()
    fault = cache.Cache(file / "graphc", 1).fault()
    assert fault.startswith(f"{file}/graphc cannot be written (Not a directory): set GRAPHC_CACHE_DIR")
