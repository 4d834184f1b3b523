"""Register blocks of a matrix product: the schedule's prediction for each, and the contents of its innermost loop.

``python -m tools.codegen.register_blocks --target neon --size 256x256x256`` prints for each block the predicted cycles
per vector multiply-add. From the assembly it counts the multiply-adds of the innermost loop, the loads and other
instructions per multiply-add, and the accesses to the stack. Nothing runs, so any target can be shown. ``--json``
prints the same as JSON.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import graphc as gc
from graphc.codegen.machine.target import Target, named_targets, target_named
from graphc.codegen.schedule.contraction.match import find_contraction
from graphc.codegen.schedule.contraction.register_block import rank_tiles
from graphc.codegen.schedule.pipeline import find_blocks
from graphc.compiler.stages import Stages

_MULTIPLY_ADD = re.compile(r"v?fn?m(add|la|sub|ls)\w*")
_MULTIPLY = re.compile(r"v?(mulp[sd]|fmul)\b")
_LOAD = re.compile(r"ld[pr]?\w*|v?mov[au]p[sd]|v?broadcasts[sd]")


@dataclass(frozen=True)
class BlockRow:
    """A register block."""

    block: str
    cycles: float
    """Predicted, for each multiply-add of a vector."""
    multiply_adds: int
    """Multiply-adds in one iteration of the innermost loop."""
    loads: int
    others: int
    stack: int
    """Instructions that touch the stack."""

    def __str__(self) -> str:
        multiply_adds = self.multiply_adds or 1
        return (
            f"{self.block:<28} {self.cycles:7.3f} {self.multiply_adds:5} {self.loads / multiply_adds:7.2f} "
            f"{self.others / multiply_adds:7.2f} {self.stack:5}"
        )


def innermost_loops(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the lines of assembly between a label and a jump back to it, where no other label is."""
    labels: dict[str, int] = {}
    for number, line in enumerate(lines):
        label = re.match(r"(\S+):", line)
        if label:
            labels = {label[1]: number}
        words = line.split()
        if words and words[-1] in labels and not label:
            yield list(lines[labels[words[-1]] + 1 : number])


def rows(size: tuple[int, int, int], target: Target, most: int) -> list[BlockRow]:
    """Return the ``most`` best blocks of a product of f32, by estimate. Raises ValueError where it has none."""
    m, n, k = size
    program = Stages(gc.trace(lambda a, b: a @ b, gc.ones(m, k), gc.ones(k, n)), target=target).lowered
    candidates = find_blocks(program, target)
    if not candidates:
        raise ValueError(f"a product of {m}x{k} and {k}x{n} has no register block")
    name, blocks = next(iter(candidates.items()))
    contraction = find_contraction(program.kernel(name))
    assert contraction is not None
    cycles = {tile.label: tile.cycles for tile in rank_tiles(contraction, target)}
    vectors = m * n * k / target.lanes(contraction.dtype)
    result = []
    for label in blocks.labels[:most]:
        assembly = Stages(lowered=program, target=target, tuned={blocks.key: label}).asm.splitlines()
        result.append(BlockRow(label, cycles[label] / vectors, **_counts(assembly)))
    return result


def _counts(assembly: Sequence[str]) -> dict[str, Any]:
    """Return instruction counts of the loop with the most multiply-adds."""
    loops = [
        [line for line in body if line.startswith("\t") and not line.lstrip().startswith(".")]
        for body in innermost_loops(assembly)
    ]
    best = max(loops, key=lambda body: sum(_is(_MULTIPLY_ADD, line) for line in body), default=[])
    adds = sum(_is(_MULTIPLY_ADD, line) for line in best) or sum(_is(_MULTIPLY, line) for line in best)
    loads = sum(_is(_LOAD, line) for line in best)
    stack = sum("(%rsp)" in line or "[sp" in line for line in best)
    return {"multiply_adds": adds, "loads": loads, "others": len(best) - adds - loads, "stack": stack}


def _is(kind: re.Pattern[str], line: str) -> bool:
    words = line.split()
    return bool(words) and kind.fullmatch(words[0]) is not None


def _size(text: str) -> tuple[int, int, int]:
    m, n, k = (int(word) for word in text.split("x"))
    if min(m, n, k) < 1:
        raise ValueError(text)
    return m, n, k


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table of blocks; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.codegen.register_blocks", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--target", choices=("host", *named_targets()), default="host")
    parser.add_argument(
        "--size",
        type=_size,
        default=(256, 256, 256),
        metavar="MxNxK",
        help="sizes of the product (default: 256x256x256)",
    )
    parser.add_argument("--most", type=int, default=12, help="number of blocks, the best by estimate first (12)")
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    options = parser.parse_args(argv)
    try:
        table = rows(options.size, target_named(options.target), options.most)
    except ValueError as error:
        parser.error(str(error))
    if options.json:
        print(json.dumps([asdict(row) for row in table]))
        return 0
    print(f"{'block':<28} {'cycles':>7} {'fma':>5} {'loads':>7} {'others':>7} {'stack':>5}")
    print(*table, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
