"""The net of damaged StableHLO texts: each is read and traced, or is a typed error.

``python -m tools.damage.stablehlo_texts --count 1000 --seed 0``; ``--jobs 2`` uses two processes.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import graphc as gc
from tools.damage.corruption import BYTES, Damage, cases_of, damaged_of, read_and_run
from tools.nets.run import Net, Outcome, main

FILES = Path(__file__).parents[2] / "tests" / "interop" / "stablehlo" / "files"
_LARGEST = 20_000
"""Bytes of the longest text that is damaged."""
_PIECE = re.compile(rb"tensor<[^>]*>|[%@#]?[\w.]+|->|[^\s\w]")
_PIECES = (
    *(
        b"",
        b"0",
        b"-1",
        b"1",
        b"7",
        b"99999999999999999999",
        b"1e999",
        b"0x7F",
        b"true",
        b"dense<1>",
        b"{",
        b"}",
        b"(",
        b")",
    ),
    *(b"tensor<3xf64>", b"tensor<?xf64>", b"tensor<*xf32>", b"tensor<99999999x99999999xf64>", b"tensor<2x!quant>"),
    *(
        b"tensor<0xf32>",
        b"i4",
        b"complex<f64>",
        b"stablehlo.add",
        b"stablehlo.while",
        b"stablehlo.no_such",
        b"%0",
        b"@main",
    ),
    *(b'"\\FF"', b"[" * 3000, b"[0, [1]]", b"array<i64: 1>", b"#stablehlo.gather<offset_dims = [9]>", b"loc(", b"^bb0"),
)
"""Replacements of a piece of the text."""


def _replace(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Replace pieces by others of this text, of another one, or from a list."""
    for _ in range(chance.choice((1, 1, 2, 5))):
        pieces = list(_PIECE.finditer(data)) or [re.match(b"", data)]
        source = chance.choice((data, *others))
        candidates = _PIECE.findall(source) or [b""]
        match = chance.choice(pieces)
        assert match is not None
        new = chance.choice((chance.choice(candidates), chance.choice(_PIECES)))
        data = data[: match.start()] + new + data[match.end() :]
    return data


def _rearrange(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Leave out, repeat or exchange lines."""
    lines = data.splitlines(keepends=True)
    first, second = chance.randrange(len(lines)), chance.randrange(len(lines))
    kind = chance.randrange(3)
    if kind == 0:
        del lines[first]
    elif kind == 1:
        lines.insert(second, lines[first])
    else:
        lines[first], lines[second] = lines[second], lines[first]
    return b"".join(lines)


DAMAGES: dict[str, tuple[Damage, int]] = {**BYTES, "replace": (_replace, 24), "rearrange": (_rearrange, 6)}


@lru_cache(maxsize=1)
def files() -> tuple[bytes, ...]:
    """Return the undamaged texts."""
    texts = [path.read_bytes() for path in sorted(FILES.glob("*.mlir"))]
    return tuple([text for text in texts if len(text) <= _LARGEST])


def cases(seed: int) -> Iterator[str]:
    """Yield ``damage/number`` without end."""
    return cases_of(DAMAGES, seed)


def damaged(case: str) -> str:
    """Return the text of a case."""
    return damaged_of(DAMAGES, case, files()).decode("utf-8", "replace")


def _traced(model: Any) -> None:
    """Trace the program: a damaged loop may have no end."""
    gc.trace(model, *model.examples())


def judge(case: str) -> Outcome:
    """Read the text of a case and trace the program."""
    return read_and_run(lambda: gc.from_stablehlo(damaged(case)), _traced)


NET = Net("damage.stablehlo_texts", (__doc__ or "").partition("\n")[0], cases, judge, isolated=True, groups=True)

if __name__ == "__main__":
    sys.exit(main(NET, count=1000))
