"""Integers of 128 bits on WebAssembly, and the multiply-add of f64 that they serve, bit for bit."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path

from graphc.codegen.link.wasm_builtins import TEXTS
from graphc.codegen.link.wasm_module import link_wasm
from graphc.codegen.machine.target import target_named
from graphc.compiler.linking import builtins_for
from tests.codegen.link.wasm_objects import call_module

NAMES = (*TEXTS, "fma", "fmod", "fmodf")
READ = "(() => { const r = new BigUint64Array(e.memory.buffer, 64, 2); return String(r[0] + (r[1] << 64n)); })()"


def module() -> bytes:
    supply = builtins_for(target_named("wasm"))
    objects = [code for name in NAMES if (code := supply(name)) is not None]
    return link_wasm(objects, NAMES, supply=supply)


def numbers(count: int, bits: int) -> list[int]:
    generator = random.Random(bits)
    return [generator.getrandbits(generator.randint(1, bits)) for _ in range(count)]


def test_products_and_shifts_of_128_bits(tmp_path: Path):
    wide, mask = numbers(40, 128), (1 << 128) - 1
    calls, expected = [], []

    def words(value: int) -> str:
        return f"{value & (1 << 64) - 1}n, {value >> 64}n"

    for a, b in zip(wide, reversed(wide), strict=True):
        calls.append(f"(e.__multi3(64, {words(a)}, {words(b)}), {READ})")
        expected.append(a * b & mask)
    for a, count in [(a, count) for a in wide[:8] for count in (0, 1, 31, 32, 63, 64, 65, 100, 127)]:
        calls += [f"(e.{name}(64, {words(a)}, {count}), {READ})" for name in ("__ashlti3", "__lshrti3")]
        expected += [a << count & mask, a >> count]
    assert call_module(module(), tmp_path, f"[{', '.join(calls)}]") == list(map(str, expected))


def test_a_multiply_add_is_rounded_once(tmp_path: Path):
    generator = random.Random(0)
    cases = []
    for _ in range(200):
        x, y = (generator.uniform(-2, 2) * 2.0 ** generator.randint(-40, 40) for _ in range(2))
        cases.append((x, y, -x * y * (1 + generator.uniform(-1, 1) * 2.0 ** generator.randint(-60, 0))))
    calls = ", ".join(f"String(e.fma({x!r}, {y!r}, {z!r}))" for x, y, z in cases)
    results = call_module(module(), tmp_path, f"[{calls}]")
    assert isinstance(results, list)
    assert [*map(float, results)] == [float(Fraction(x) * Fraction(y) + Fraction(z)) for x, y, z in cases]


def test_remainders_and_copies(tmp_path: Path):
    expression = """(() => {
      new Uint8Array(e.memory.buffer).set([1, 2, 3, 4], 64);
      return [e.fmod(10.5, 3), e.fmod(-1e300, 7e-3), e.fmodf(-7, 2.5), e.memcpy(80, 64, 3n),
        ...new Uint8Array(e.memory.buffer, 80, 4)];
    })()"""
    remainder = -float(Fraction(1e300) % Fraction(7e-3))
    assert call_module(module(), tmp_path, expression) == [1.5, remainder, -2, 80, 1, 2, 3, 0]
