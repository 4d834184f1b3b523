"""Functions of ``codegen.link.soft_float`` on this machine, for arrays, and numbers to try."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from graphc.codegen.link.shared import link_shared
from graphc.codegen.link.soft_float.texts import TEXTS
from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.target import target_named
from tests.codegen.link.objects import own_target

COUNT = 200_000
FORMATS = {"s": (np.float32, "float", "f"), "d": (np.float64, "double", "")}
LOOP = """
define void @all(ptr %in, ptr %out, i64 %n) {{
  br label %next
next:
  %i = phi i64 [ 0, %0 ], [ %after, %next ]
{loads}
  %r = call {result} @own({arguments})
  %to = getelementptr {result}, ptr %out, i64 %i
  store {result} %r, ptr %to
  %after = add i64 %i, 1
  %more = icmp ult i64 %after, %n
  br i1 %more, label %next, label %end
end:
  ret void
}}
"""
LOAD = """  %p{k} = getelementptr ptr, ptr %in, i64 {k}
  %column{k} = load ptr, ptr %p{k}
  %at{k} = getelementptr {kind}, ptr %column{k}, i64 %i
  %x{k} = load {kind}, ptr %at{k}"""


def run(name: str, arguments: list[np.ndarray], kinds: list[str], result: tuple[type, str], folder: Path) -> np.ndarray:
    """Return the results of a function for all elements of arrays, computed by this machine's integers."""
    target = target_named(own_target())
    own = TEXTS[name].replace(f"define weak hidden {result[1]} @{name}(", f"define internal {result[1]} @own(")
    loads = "\n".join(LOAD.format(k=k, kind=kind) for k, kind in enumerate(kinds))
    values = ", ".join(f"{kind} %x{k}" for k, kind in enumerate(kinds))
    loop = LOOP.format(loads=loads, result=result[1], arguments=values)
    code = build_object(f'target triple = "{target.triple}"\n{own}{loop}', target)
    (folder / "own.so").write_bytes(link_shared([code], ["all"], allowed=()))
    library, out = ctypes.CDLL(str(folder / "own.so")), np.empty(len(arguments[0]), result[0])
    columns = (ctypes.c_void_p * len(arguments))(*(a.ctypes.data for a in arguments))
    library.all(columns, ctypes.c_void_p(out.ctypes.data), ctypes.c_int64(out.size))
    return out


def floats(dtype: type, columns: int) -> list[np.ndarray]:
    """Numbers of all bits and usual ones, numbers near those of other columns, halves, and all tuples of edges."""
    random, info = np.random.default_rng(5), np.finfo(dtype)
    tiny, edges = info.smallest_subnormal, [0.0, np.inf, np.nan, 1.0, 0.5, 1.5, info.tiny, info.max]
    edges += [tiny, 3 * tiny, info.tiny - tiny, np.nextafter(dtype(1), dtype(2)), np.nextafter(dtype(1), dtype(0))]
    signed = np.array([*edges, *(-edge for edge in edges)], dtype)
    grid = [a.ravel() for a in np.meshgrid(*[signed] * columns)]
    lowest, highest = info.minexp - info.nmant, info.maxexp - 1
    arrays = []
    for k in range(columns):
        bits = np.frombuffer(random.bytes(COUNT * np.dtype(dtype).itemsize), dtype)
        usual = random.standard_normal(COUNT).astype(dtype)
        near = np.ldexp(usual, random.integers(-60, 60, COUNT)).astype(dtype)
        range_of_small = (lowest // 2 - 30, 30) if k else (lowest, lowest // 2 + 30)
        small = np.ldexp(usual, random.integers(*range_of_small, COUNT)).astype(dtype)
        large = np.ldexp(usual, random.integers(highest // 3, highest, COUNT)).astype(dtype)
        halves = (random.integers(-(2**26), 2**26, COUNT) / 2).astype(dtype)
        groups = np.choose(random.integers(0, 6, COUNT), [bits, usual, near, small, large, halves])
        arrays.append(np.concatenate([grid[k], groups]))
    return arrays


def assert_equal(actual: np.ndarray, expected: np.ndarray, *operands: np.ndarray) -> None:
    """Bit by bit; one NaN is as good as another."""
    assert actual.dtype == expected.dtype
    both = np.isnan(actual) & np.isnan(expected)
    differ = (actual.view(f"u{actual.itemsize}") != expected.view(f"u{actual.itemsize}")) & ~both
    assert not differ.any(), (differ.sum(), *(x[differ][:4] for x in (*operands, actual, expected)))
