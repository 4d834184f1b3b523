"""Functions of memory for libraries: the bytes of libc's, for lengths and distances around whole chunks."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from graphc.codegen.link.memory_functions import MACOS_FUNCTIONS, MEMORY_FUNCTIONS
from graphc.codegen.link.shared import link_shared
from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.target import target_named
from tests.codegen.link.objects import own_target

LENGTHS = [0, 1, 7, 31, 32, 33, 63, 64, 65, 1000]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The functions under names of their own."""
    target, path = target_named(own_target()), tmp_path_factory.mktemp("memory") / "memory.so"
    texts = [text.replace(f"@{name}(", f"@own_{name}(") for name, text in MEMORY_FUNCTIONS.items()]
    objects = [build_object(f'target triple = "{target.triple}"\n{text}', target) for text in texts]
    path.write_bytes(link_shared(objects, [f"own_{name}" for name in MEMORY_FUNCTIONS], needed=()))
    loaded = ctypes.CDLL(str(Path(path)))
    for name in MEMORY_FUNCTIONS:
        getattr(loaded, f"own_{name}").restype = ctypes.c_void_p
    return loaded


def called(library: ctypes.CDLL, name: str, *arguments: int) -> int:
    return getattr(library, f"own_{name}")(*map(ctypes.c_void_p, arguments))


def memory() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, 4096).astype(np.uint8)


@pytest.mark.parametrize("length", LENGTHS)
def test_copies_between_two_places(library: ctypes.CDLL, length: int):
    source, target, expected = memory(), memory()[::-1].copy(), memory()[::-1].copy()
    expected[3 : 3 + length] = source[5 : 5 + length]
    assert called(library, "memcpy", target.ctypes.data + 3, source.ctypes.data + 5, length) == target.ctypes.data + 3
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("distance", [-40, -1, 0, 1, 31, 40])
def test_moves_within_one_place(library: ctypes.CDLL, length: int, distance: int):
    actual, expected = memory(), memory()
    expected[100 + distance : 100 + distance + length] = memory()[100 : 100 + length]
    start = actual.ctypes.data + 100
    assert called(library, "memmove", start + distance, start, length) == start + distance
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("value", [0, 7, 255, 256 + 3])
def test_fills_with_the_lowest_byte(library: ctypes.CDLL, length: int, value: int):
    actual, expected = memory(), memory()
    expected[9 : 9 + length] = value % 256
    assert called(library, "memset", actual.ctypes.data + 9, value, length) == actual.ctypes.data + 9
    np.testing.assert_array_equal(actual, expected)


def test_memory_is_cleared(tmp_path: Path):
    target, path = target_named(own_target()), tmp_path / "clear.so"
    texts = [MEMORY_FUNCTIONS["memset"]]
    texts += [text.replace(f"@{name}(", f"@own_{name}(") for name, text in MACOS_FUNCTIONS.items()]
    names = [f"own_{name}" for name in MACOS_FUNCTIONS]
    objects = [build_object(f'target triple = "{target.triple}"\n{text}', target) for text in texts]
    path.write_bytes(link_shared(objects, names, needed=()))
    for name in names:
        data = memory() | 1
        getattr(ctypes.CDLL(str(path)), name)(ctypes.c_void_p(data.ctypes.data + 3), ctypes.c_size_t(1001))
        assert not data[3:1004].any() and data[:3].all() and data[1004:].all()
