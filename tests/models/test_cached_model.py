"""Model files in the cache: found by source and options, replaced when damaged, absent where they cannot be stored."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc.compiler.cache import Cache
from graphc.models.cached_model import cached_model
from graphc.models.model_file import LoadedModel


class Maker:
    """Counts how often the entries of a model are made."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> Mapping[str, gc.Entry]:
        self.count += 1
        return {"scale": gc.Entry(lambda x: x * self.count, gc.zeros(3))}


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "source.bin"
    path.write_bytes(b"weights")
    return path


def scale(model: LoadedModel | None) -> float:
    assert model is not None
    return float(model(np.ones(3, np.float32))[0])


def test_a_model_is_made_once_for_each_source_and_option(source: Path):
    make = Maker()
    assert [scale(cached_model(source, ["a"], make)) for _ in range(3)] == [1, 1, 1]
    assert scale(cached_model(source, ["b"], make)) == 2
    source.write_bytes(b"Weights")
    assert [scale(cached_model(source, ["a"], make)) for _ in range(2)] == [3, 3]


def test_a_source_may_be_a_folder(source: Path):
    make = Maker()
    assert scale(cached_model(source.parent, [], make)) == 1
    (source.parent / "more.bin").write_bytes(b"")
    assert scale(cached_model(source.parent, [], make)) == 2


def test_a_damaged_file_is_made_again(source: Path, tmp_path: Path):
    make = Maker()
    assert scale(cached_model(source, [], make)) == 1
    (stored,) = (tmp_path / "cache").glob("*.gcm")
    content = bytearray(stored.read_bytes())
    content[-1] ^= 1
    stored.unlink()
    stored.write_bytes(content)
    with pytest.warns(RuntimeWarning, match="damaged"):
        assert scale(cached_model(source, [], make)) == 2
    assert scale(cached_model(source, [], make)) == 2


def test_a_file_that_another_process_removes_is_made_again(source: Path, monkeypatch: pytest.MonkeyPatch):
    make = Maker()
    assert scale(cached_model(source, [], make)) == 1
    find, removed = Cache.model, []

    def find_and_lose(disk: Cache, key: str) -> Path | None:
        path = find(disk, key)
        if path is not None and not removed:
            path.unlink()
            removed.append(path)
        return path

    monkeypatch.setattr(Cache, "model", find_and_lose)
    assert scale(cached_model(source, [], make)) == 2
    assert [path.exists() for path in removed] == [True]


def test_models_count_as_programs_of_the_cache(source: Path, tmp_path: Path):
    make, disk = Maker(), Cache(tmp_path / "cache", 1 << 20)
    assert scale(cached_model(source, [], make)) == 1
    (stored,) = disk.folder.glob("*.gcm")
    assert (stored.stem, stored.stat().st_size) in {(key, size) for key, size, _ in disk.entries()}
    count = disk.usage().entries
    assert count == len(disk.entries()) and disk.clear() == count
    assert not stored.exists() and disk.usage().entries == 0


def test_models_that_the_cache_does_not_hold(source: Path, monkeypatch: pytest.MonkeyPatch):
    make = Maker()
    assert cached_model(source, ["none"], dict) is None
    monkeypatch.setenv("GRAPHC_CACHE_SIZE", "13")
    assert cached_model(source, [], make) is None and make.count == 0, "the source has more than 6 bytes"
    monkeypatch.setenv("GRAPHC_CACHE_SIZE", "1000")
    assert cached_model(source, [], make) is None and make.count == 1, "the model is larger than the limit"
    monkeypatch.setenv("GRAPHC_CACHE", "off")
    assert cached_model(source, [], make) is None and make.count == 1


def test_a_missing_source(source: Path):
    with pytest.raises(FileNotFoundError):
        cached_model(source.parent / "none.bin", [], Maker())
