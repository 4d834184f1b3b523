"""Functions of mathematics for libraries: the bits of numpy and of libm, on edge values and at random."""

from __future__ import annotations

import ctypes
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from graphc.codegen.link.builtins import NAMES, builtin_text
from graphc.codegen.link.shared import link_shared
from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.target import Target, architecture, target_named
from tests.codegen.link.objects import TARGETS, need, own_target
from tools.codegen.cross_ops import PROCESSORS, commands

COUNT = 20_000
OPERANDS = {"fma": 3, "fmod": 2, "fmodf": 2}
EDGES = (
    *(0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 2.0**23 - 0.5, 2.0**23, 2.0**52 - 0.5),
    *(2.0**52, 2.0**53, -(2.0**52) - 1, 1e-40, 1e-45, 5e-324, -1e-310, 2.0**-1022, 2.0**-126, 3e38, 1.7e308),
)
C = """
#include <stdio.h>
#include <stdlib.h>
typedef {kind} T;
T own_{name}({kinds});
int main(int argc, char **argv) {{
  long n = {count};
  T *x[3], *r = malloc(n * sizeof(T));
  for (int i = 0; i < 3; i++) {{ x[i] = malloc(n * sizeof(T)); if (i < {operands}) fread(x[i], sizeof(T), n, stdin); }}
  for (long i = 0; i < n; i++) r[i] = own_{name}({values});
  return fwrite(r, sizeof(T), n, stdout) != n;
}}
"""


def type_of(name: str) -> np.dtype:
    return np.dtype(np.float32 if name.endswith("f") else np.float64)


def operands(name: str) -> list[np.ndarray]:
    """Numbers of all bits, usual ones, halves and edges; for fma, also terms that nearly cancel the product, and
    products near the smallest number."""
    dtype, random = type_of(name), np.random.default_rng(5)
    columns = []
    for _ in range(OPERANDS.get(name, 1)):
        bits = np.frombuffer(random.bytes(COUNT * dtype.itemsize), dtype)
        usual = random.standard_normal(COUNT) * 2.0 ** random.integers(-30, 60, COUNT)
        halves = random.integers(-20, 20, COUNT) / 2
        edges = random.choice(EDGES, COUNT)
        with np.errstate(over="ignore", invalid="ignore"):
            groups = [group.astype(dtype) for group in (bits, usual, halves, edges)]
        columns.append(np.choose(random.integers(0, 4, COUNT), groups))
    if name == "fma":
        half, some = COUNT // 2, COUNT // 4
        with np.errstate(all="ignore"):
            columns[2][:half] = -(columns[0] * columns[1])[:half] * (1 + random.integers(-2, 3, half) * 2.0**-52)
        columns[0][:some] = random.standard_normal(some) * 2.0**-500
        columns[1][:some] = random.standard_normal(some) * 2.0 ** random.integers(-580, -500, some)
        columns[2][:some] = random.standard_normal(some) * 2.0 ** random.integers(-1074, -1010, some)
        for column in columns[:2]:  # about the exponents from which fma computes in integers
            column[-some:] = random.standard_normal(some) * 2.0 ** random.choice((-401, -400, 0, 399, 400), some)
        product = columns[0][-some:] * columns[1][-some:]
        columns[2][-some:] = -product * (1 + random.integers(-2, 3, some) * 2.0**-52)
    return columns


@cache
def expected(name: str) -> np.ndarray:
    """Return the results of libm, and of numpy where it has the function."""
    function = getattr(ctypes.CDLL("libm.so.6"), name)
    kind = ctypes.c_float if type_of(name).itemsize == 4 else ctypes.c_double
    arguments = operands(name)
    function.restype, function.argtypes = kind, [kind] * len(arguments)
    return np.array([function(*values) for values in zip(*(a.tolist() for a in arguments), strict=True)], type_of(name))


def library(name: str, target: Target) -> bytes:
    text = builtin_text(name, target.triple)
    assert text is not None
    text = text.replace(f"hidden {kind(name)} @{name}(", f"{kind(name)} @own_{name}(")
    code = build_object(text, target)
    return link_shared([code], [f"own_{name}"], allowed=())


def kind(name: str) -> str:
    return "float" if name.endswith("f") else "double"


def assert_equal(actual: np.ndarray, expected: np.ndarray) -> None:
    """Bit by bit; one NaN is as good as another."""
    both = np.isnan(actual) & np.isnan(expected)
    differ = (actual.view(f"u{actual.itemsize}") != expected.view(f"u{actual.itemsize}")) & ~both
    assert not differ.any(), (actual[differ][:4], expected[differ][:4])


@pytest.mark.parametrize("name", sorted(NAMES))
def test_each_gives_the_bits_of_libm_here(name: str, tmp_path: Path):
    path = tmp_path / "lib.so"
    path.write_bytes(library(name, target_named(own_target())))
    function = getattr(ctypes.CDLL(str(path)), f"own_{name}")
    arguments = operands(name)
    number = ctypes.c_float if type_of(name).itemsize == 4 else ctypes.c_double
    function.restype, function.argtypes = number, [number] * len(arguments)
    results = [function(*values) for values in zip(*(a.tolist() for a in arguments), strict=True)]
    assert_equal(np.array(results, type_of(name)), expected(name))


@pytest.mark.parametrize("name", sorted(NAMES))
@pytest.mark.parametrize("machine", TARGETS)
def test_each_gives_these_bits_on_every_machine(machine: str, name: str, tmp_path: Path):
    target, arguments = target_named(machine), operands(name)
    need(*commands(target))
    compiler, *emulator = commands(target)
    (tmp_path / "lib.so").write_bytes(library(name, target))
    values = ", ".join(f"x[{i}][i]" for i in range(len(arguments)))
    kinds = ", ".join(["T"] * len(arguments))
    text = C.format(kind=kind(name), name=name, kinds=kinds, count=COUNT, operands=len(arguments), values=values)
    (tmp_path / "main.c").write_text(text)
    subprocess.run([compiler, "-w", "main.c", "./lib.so", "-o", "main"], cwd=tmp_path, check=True)
    if emulator:
        processor = architecture(target)
        emulator += ["-cpu", PROCESSORS.get(processor, "max"), "-L", f"/usr/{processor}-linux-gnu"]
    bits = b"".join(np.ascontiguousarray(a).tobytes() for a in arguments)
    done = subprocess.run([*emulator, "./main"], input=bits, capture_output=True, check=True, cwd=tmp_path)
    assert_equal(np.frombuffer(done.stdout, type_of(name)), expected(name))


@pytest.mark.parametrize("name", sorted(NAMES - {"fma", "roundeven", "roundevenf"}))
def test_libm_agrees_with_numpy(name: str):
    function = getattr(np, name.removesuffix("f") if type_of(name).itemsize == 4 else name)
    with np.errstate(all="ignore"):
        assert_equal(function(*operands(name)), expected(name))


def test_other_names_are_not_known():
    assert builtin_text("malloc", "x86_64-unknown-linux-gnu") is None
