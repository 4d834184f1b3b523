"""Arithmetic in integers: the bits of numpy and of libm, on edge values, at random, and where results are subnormal."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from graphc.codegen.link.builtins import builtin_text
from graphc.codegen.link.elf32 import read_contents
from graphc.codegen.link.shared import link_shared
from graphc.codegen.link.soft_float import TEXTS
from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.target import target_named
from tests.codegen.link.objects import own_target

COUNT = 200_000
LIBM_COUNT = 60_000
"""Numbers with which libm is called one by one."""
FORMATS = {"s": (np.float32, "float", "f"), "d": (np.float64, "double", "")}
INTEGERS = {
    **{"si": (np.int32, "i32"), "di": (np.int64, "i64")},
    **{"unssi": (np.uint32, "i32"), "unsdi": (np.uint64, "i64")},
}
ORDERS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    **{"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater},
    **{"ge": np.greater_equal, "unord": lambda x, y: np.isnan(x) | np.isnan(y)},
}
MEANS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    **{"eq": lambda r: r == 0, "ne": lambda r: r != 0, "lt": lambda r: r < 0, "le": lambda r: r <= 0},
    **{"gt": lambda r: r > 0, "ge": lambda r: r >= 0, "unord": lambda r: r != 0},
}
"""What callers conclude from the result of a comparison."""
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


@pytest.mark.parametrize("letter", FORMATS)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_arithmetic_has_the_bits_of_numpy(name: str, letter: str, tmp_path: Path):
    dtype, kind, _ = FORMATS[letter]
    x, y = floats(dtype, 2)
    if name in ("add", "sub"):  # differences of which few bits stay
        some = slice(-COUNT // 4, None)
        with np.errstate(all="ignore"):
            x[some] = np.nextafter(-y[some] if name == "add" else y[some], dtype(0)) * dtype(2)
    with np.errstate(all="ignore"):
        expected = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[name](x, y)
    assert_equal(run(f"__{name}{letter}f3", [x, y], [kind] * 2, (dtype, kind), tmp_path), expected, x, y)


@pytest.mark.parametrize("letter", FORMATS)
def test_roots_have_the_bits_of_numpy(letter: str, tmp_path: Path):
    dtype, kind, suffix = FORMATS[letter]
    x = np.abs(floats(dtype, 1)[0])
    x[::7] = -x[::7]
    with np.errstate(all="ignore"):
        expected = np.sqrt(x)
    assert_equal(run(f"sqrt{suffix}", [x], [kind], (dtype, kind), tmp_path), expected, x)


@pytest.mark.parametrize("letter", FORMATS)
def test_multiply_add_has_the_bits_of_libm(letter: str, tmp_path: Path):
    dtype, kind, suffix = FORMATS[letter]
    columns = [np.concatenate([c[-LIBM_COUNT // 2 :], c[: LIBM_COUNT // 2]]) for c in floats(dtype, 3)]
    random, some = np.random.default_rng(6), slice(0, LIBM_COUNT // 3)
    with np.errstate(all="ignore"):  # terms that cancel nearly all of the product
        steps = dtype(1) + random.integers(-3, 4, LIBM_COUNT // 3).astype(dtype) * np.finfo(dtype).epsneg
        columns[2][some] = (-(columns[0] * columns[1])[some] * steps).astype(dtype)
    function = getattr(ctypes.CDLL("libm.so.6"), f"fma{suffix}")
    number = ctypes.c_float if suffix else ctypes.c_double
    function.restype, function.argtypes = number, [number] * 3
    expected = np.array([function(*v) for v in zip(*(c.tolist() for c in columns), strict=True)], dtype)
    assert_equal(run(f"fma{suffix}", columns, [kind] * 3, (dtype, kind), tmp_path), expected, *columns)


@pytest.mark.parametrize("letter", FORMATS)
@pytest.mark.parametrize("name", ORDERS)
def test_comparisons_are_those_of_numpy(name: str, letter: str, tmp_path: Path):
    dtype, kind, _ = FORMATS[letter]
    x, y = floats(dtype, 2)
    x[::5] = y[::5]
    results = run(f"__{name}{letter}f2", [x, y], [kind] * 2, (np.int32, "i32"), tmp_path)
    np.testing.assert_array_equal(MEANS[name](results), ORDERS[name](x, y))


@pytest.mark.parametrize("letter", FORMATS)
@pytest.mark.parametrize("name", INTEGERS)
def test_floats_become_integers_towards_zero_within_the_limits(name: str, letter: str, tmp_path: Path):
    (dtype, kind, _), (integer, word) = FORMATS[letter], INTEGERS[name]
    info = np.iinfo(integer)
    x = np.concatenate([*floats(dtype, 1), *(dtype(2.0**n) * np.array([1, -1], dtype) for n in range(66))])
    whole = np.trunc(np.where(np.isnan(x), 0, x))
    above, below = whole >= 2.0**info.bits / (1 if info.min == 0 else 2), whole < info.min
    expected = np.where(above | below, 0, whole).astype(integer)
    expected[above | np.isnan(x)], expected[below] = info.max, info.min
    found = run(f"__fix{name.removesuffix(name[-2:])}{letter}f{name[-2:]}", [x], [kind], (integer, word), tmp_path)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("letter", FORMATS)
@pytest.mark.parametrize("name", INTEGERS)
def test_integers_become_the_nearest_floats(name: str, letter: str, tmp_path: Path):
    (dtype, kind, _), (integer, word) = FORMATS[letter], INTEGERS[name]
    random, info = np.random.default_rng(3), np.iinfo(integer)
    bits = np.frombuffer(random.bytes(COUNT * info.bits // 8), integer) >> integer(0)
    short = bits >> random.integers(0, info.bits, COUNT).astype(integer)
    x = np.concatenate([bits, short, np.array([0, 1, info.min, info.max, info.max - 1, 2**24 + 1, 2**24 + 3], integer)])
    found = run(f"__float{name.replace('uns', 'un')}{letter}f", [x], [word], (dtype, kind), tmp_path)
    assert_equal(found, x.astype(dtype), x)


def test_formats_become_each_other(tmp_path: Path):
    single, double = floats(np.float32, 1)[0], floats(np.float64, 1)[0]
    random = np.random.default_rng(9)
    with np.errstate(all="ignore"):  # halves of the last place, also of subnormal numbers
        near = single.astype(np.float64) * (1 + random.integers(-2, 3, single.size) * 2.0**-25)
        x = np.concatenate([double, near])
        assert_equal(run("__truncdfsf2", [x], ["double"], (np.float32, "float"), tmp_path), x.astype(np.float32), x)
    (tmp_path / "more").mkdir()
    found = run("__extendsfdf2", [single], ["float"], (np.float64, "double"), tmp_path / "more")
    with np.errstate(invalid="ignore"):
        assert_equal(found, single.astype(np.float64), single)


@pytest.mark.parametrize("name", ["div", "mod", "udiv", "umod"])
def test_quotients_of_64_bits(name: str, tmp_path: Path):
    integer, random = (np.uint64 if name.startswith("u") else np.int64), np.random.default_rng(4)
    x, y = (
        np.frombuffer(random.bytes(8 * COUNT), integer) >> random.integers(0, 64, COUNT).astype(integer)
        for _ in range(2)
    )
    x[:4], y[:4] = np.iinfo(integer).max, [1, 2, 3, np.iinfo(integer).max]
    y = np.where(y == 0, integer(7), y)
    with np.errstate(all="ignore"):
        quotient = (np.abs(x) // np.abs(y)) * np.sign(x) * np.sign(y) if integer is np.int64 else x // y
        expected = quotient if "div" in name else x - quotient * y
    np.testing.assert_array_equal(run(f"__{name}di3", [x, y], ["i64"] * 2, (integer, "i64"), tmp_path), expected)


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_each_is_a_function_of_a_microcontroller_that_calls_only_others_of_them(name: str):
    target = target_named("rv32imc")
    text = builtin_text(name, target.triple)
    assert text is not None
    contents = read_contents(build_object(text, target))
    assert contents.defined == (name,) and {*contents.undefined} <= {*TEXTS}
