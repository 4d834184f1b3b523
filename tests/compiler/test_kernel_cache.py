"""Cached kernels: shared by programs and processes, refused where they cannot be trusted, evicted as programs are."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from graphc.codegen.llvm import build
from graphc.compiler import cache, kernel_cache
from graphc.compiler.cache import Cache
from graphc.compiler.compile import compile_graph
from graphc.compiler.kernel_cache import KERNELS, KernelCache
from tests.compiler.graphs import mlp


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    cache._warned.clear()
    KERNELS.forget()
    yield
    cache._warned.clear()


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path / "cache"))
    current = cache.current()
    assert current is not None
    return current


def key(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def packs(disk: Cache) -> list[Path]:
    return sorted(disk.folder.glob(f"*{cache.PACK}"))


def test_another_process_reads_what_this_one_stored(disk: Cache):
    KernelCache().store({key(1): b"one", key(2): b"two"})
    KernelCache().store({key(3): b"three"})
    assert len(packs(disk)) == 2
    assert KernelCache().load([key(i) for i in range(5)]) == {key(1): b"one", key(2): b"two", key(3): b"three"}


def test_kernels_stay_in_memory_up_to_a_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_CACHE", "off")
    monkeypatch.setattr(kernel_cache, "MEMORY_BYTES", 10)
    kernels = KernelCache()
    kernels.store({key(1): b"1234", key(2): b"5678"})
    assert kernels.load([key(1)]) == {key(1): b"1234"}
    kernels.store({key(3): b"9012"})
    assert kernels.load([key(1), key(2), key(3)]) == {key(1): b"1234", key(3): b"9012"}


@pytest.mark.parametrize("position", [0.1, 0.5, 0.99])
def test_a_damaged_pack_is_removed(disk: Cache, position: float):
    KernelCache().store({key(1): b"one" * 100})
    (pack,) = packs(disk)
    content = bytearray(pack.read_bytes())
    content[int(position * len(content))] ^= 1
    pack.write_bytes(content)
    with pytest.warns(RuntimeWarning, match="does not work"):
        assert KernelCache().load([key(1)]) == {}
    assert not pack.exists()


def test_a_pack_under_another_name_is_not_taken(disk: Cache):
    KernelCache().store({key(1): b"one"})
    KernelCache().store({key(2): b"two"})
    first, second = packs(disk)
    first.write_bytes(second.read_bytes())
    with pytest.warns(RuntimeWarning, match="pack of kernels"):
        assert len(KernelCache().load([key(1), key(2)])) == 1


@pytest.mark.parametrize("name", ["index", "pack"])
def test_files_that_others_can_write_to_are_not_used(disk: Cache, name: str):
    KernelCache().store({key(1): b"one"})
    file = disk.folder / cache.INDEX if name == "index" else packs(disk)[0]
    file.chmod(0o666)
    with pytest.warns(RuntimeWarning, match="can be written by other users"):
        assert KernelCache().load([key(1)]) == {}
    assert not file.exists()


def test_a_torn_or_stale_index_loses_kernels_and_nothing_else(disk: Cache):
    KernelCache().store({key(1): b"one"})
    index = disk.folder / cache.INDEX
    with index.open("ab") as file:
        file.write(bytes.fromhex(key(2))[:7])  # as after a full disk
    KernelCache().store({key(3): b"three"})
    with index.open("ab") as file:
        file.write(bytes.fromhex(key(4)) + bytes(16) + bytes.fromhex(key(5)))
    assert KernelCache().load([key(i) for i in range(6)]) == {key(1): b"one", key(3): b"three"}


def test_the_index_starts_again_when_it_is_long(disk: Cache, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kernel_cache, "INDEX_BYTES", 100)
    for i in range(5):
        KernelCache().store({key(i): b"code"})
        assert KernelCache().load([key(i)]) == {key(i): b"code"}
    assert (disk.folder / cache.INDEX).stat().st_size <= 144


def test_packs_are_evicted_and_cleared_with_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    disk = Cache(tmp_path / "cache", 10_000)
    monkeypatch.setattr(cache, "current", lambda: disk)
    for i in range(10):
        KernelCache().store({key(i): bytes(2000)})
        os.utime(packs(disk)[-1])
    assert 1 <= len(packs(disk)) <= 4 and disk.usage().bytes <= disk.limit
    assert disk.usage().entries == 0 and disk.entries() == []
    assert disk.clear() == 0 and not packs(disk) and not (disk.folder / cache.INDEX).exists()


def test_many_threads_store_and_load(disk: Cache):
    def work(number: int) -> dict[str, bytes]:
        KernelCache().store({key(number % 8): bytes([number % 8])})
        return KernelCache().load([key(i) for i in range(8)])

    with ThreadPoolExecutor(8) as pool:
        for cached in pool.map(work, range(64)):
            assert all(code == bytes([i]) for i in range(8) for code in [cached.get(key(i))] if code is not None)
    assert len(KernelCache().load([key(i) for i in range(8)])) == 8


def test_a_program_after_an_equal_one_builds_no_kernel(disk: Cache, monkeypatch: pytest.MonkeyPatch):
    """Without its entry, and in a process that has no kernels in memory."""
    before = compile_graph(mlp())
    shared = [*packs(disk)]
    for path in disk.folder.glob(f"*{cache.SUFFIX}"):
        path.unlink()
    KERNELS.forget()
    texts: list[str] = []
    original = build._build
    monkeypatch.setattr(build, "_build", lambda text, *rest: texts.append(text) or original(text, *rest))
    after = compile_graph(mlp())
    assert after.object == before.object and shared
    assert len(texts) == 1 and "@graphc_entry(" in texts[0]
