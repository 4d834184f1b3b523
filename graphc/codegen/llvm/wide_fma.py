"""Multiply-add of f32 through f64, which holds the product of two f32 exactly, for machines without the instruction."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.base.records import dataclass


@dataclass(frozen=True)
class WideFma:
    """Writer of multiply-adds of f32."""

    line: Callable[[str], str]
    """Appends an instruction and returns its register."""
    rounds_once: bool
    """Whether the result is the nearest f32 of the exact one. Otherwise the sum is rounded to f64 before."""
    in_halves: bool
    """Whether vectors become f64 two elements at a time, see ``Target.converts_pairs``."""

    def text(self, args: Sequence[str], lanes: int) -> str:
        """Return the register of ``args[0] * args[1] + args[2]``; ``lanes`` 0 is a scalar."""
        if self.in_halves and lanes >= 4 and lanes & (lanes - 1) == 0:
            return self._joined(args, lanes)
        return self.line(f"fptrunc {_type('double', lanes)} {self._total(args, lanes)} to {_type('float', lanes)}")

    def _total(self, args: Sequence[str], lanes: int) -> str:
        """Return the f64 that rounds to the result."""
        narrow, wide = _type("float", lanes), _type("double", lanes)
        a, b, c = (self.line(f"fpext {narrow} {x} to {wide}") for x in args)
        product = self.line(f"fmul {wide} {a}, {b}")
        total = self.line(f"fadd {wide} {product}, {c}")
        return self._to_odd(total, product, c, lanes) if self.rounds_once else total

    def _joined(self, args: Sequence[str], lanes: int) -> str:
        """Return the result for a vector, computed in vectors of two f64."""
        half = lanes // 2
        parts = [self._picked(args, start, half, lanes) for start in (0, half)]
        if lanes > 4:
            low, high = (self._joined(part, half) for part in parts)
            picks = range(lanes)
        else:
            # NOTE: with zeros after it, a pair is rounded by one instruction; by itself LLVM takes it apart.
            totals = [self._total(part, half) for part in parts]
            padded = [self.line(_shuffle("<2 x double>", x, "zeroinitializer", range(4))) for x in totals]
            low, high = (self.line(f"fptrunc <4 x double> {x} to <4 x float>") for x in padded)
            half, picks = 4, (0, 1, 4, 5)
        return self.line(_shuffle(_type("float", half), low, high, picks))

    def _picked(self, vectors: Sequence[str], start: int, count: int, lanes: int) -> list[str]:
        """Return neighbouring elements of vectors."""
        picks = range(start, start + count)
        return [self.line(_shuffle(_type("float", lanes), x, "poison", picks)) for x in vectors]

    def _to_odd(self, total: str, a: str, b: str, lanes: int) -> str:
        """Return the f64 sum of ``a`` and ``b`` rounded to odd, given the nearest one, ``total``.

        Rounded once more, to f32, it is the nearest f32 of the exact sum: an inexact odd number is never half way
        between two f32. Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums", 2008.
        """
        kind, word, mask = (_type(name, lanes) for name in ("double", "i64", "i1"))
        one, sign_bit, none = (_constant("i64", str(n), lanes) for n in (1, 63, 0))

        def sub(x: str, y: str) -> str:
            return self.line(f"fsub {kind} {x}, {y}")

        added = sub(total, a)
        error = self.line(f"fadd {kind} {sub(a, sub(total, added))}, {sub(b, added)}")
        bits, sign = (self.line(f"bitcast {kind} {x} to {word}") for x in (total, error))
        away = self.line(f"ashr {word} {self.line(f'xor {word} {bits}, {sign}')}, {sign_bit}")
        step = self.line(f"or {word} {away}, {one}")
        inexact = self.line(f"fcmp one {kind} {error}, {_constant('double', f'0x{0:016X}', lanes)}")
        last = self.line(f"and {word} {bits}, {one}")
        even = self.line(f"icmp eq {word} {last}, {none}")
        moves = self.line(f"and {mask} {inexact}, {even}")
        moved = self.line(f"add {word} {bits}, {step}")
        chosen = self.line(f"select {mask} {moves}, {word} {moved}, {word} {bits}")
        return self.line(f"bitcast {word} {chosen} to {kind}")


def _type(name: str, lanes: int) -> str:
    return f"<{lanes} x {name}>" if lanes else name


def _constant(name: str, value: str, lanes: int) -> str:
    return f"splat ({name} {value})" if lanes else value


def _shuffle(kind: str, first: str, second: str, picks: Sequence[int]) -> str:
    mask = ", ".join(f"i32 {i}" for i in picks)
    return f"shufflevector {kind} {first}, {kind} {second}, <{len(picks)} x i32> <{mask}>"
