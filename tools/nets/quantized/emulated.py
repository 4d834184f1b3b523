"""Random quantized graphs as machine code of other processors: the codes of this machine, computed under qemu.

``python -m tools.nets.quantized.emulated --target rv64gc --count 40 --seed 0``. The C compiler of that machine and
qemu-user are needed (``tools.codegen.cross_ops``). All graphs of a call are compiled, and then run together. Only
graphs whose scales are powers of two are compared: their arithmetic is exact.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

import graphc
from graphc.codegen.machine.target import Target
from graphc.compiler.freeze import freeze
from tools.codegen.cross_ops import Program, build_program, command
from tools.nets.quantized.builder import QuantizedBuilder, names
from tools.nets.quantized.evaluators import compiled
from tools.nets.quantized.exact import graph_of
from tools.nets.sized import quiet
from tools.progress import progress_bar


def exact_graphs(seed: int) -> Iterator[tuple[str, QuantizedBuilder]]:
    """Yield the names and the graphs of a seed whose arithmetic is exact."""
    for name in names(seed):
        builder = graph_of(name)
        if builder.blocks and builder.is_exact:
            yield name, builder


def program_of(name: str, builder: QuantizedBuilder, target: Target) -> Program | None:
    """Return the program of a graph for a target, which is expected to have the codes of this machine."""
    model, feeds = builder.model(), builder.feeds()
    expected = compiled(model, feeds)
    module = graphc.from_onnx(model)
    weights = {key: np.asarray(value.numpy()) for key, value in module.state_dict().items()}
    graph = freeze(graphc.trace(module, *map(graphc.tensor, feeds.values())), weights)
    return build_program(name, graph, list(feeds.values()), list(expected.values()), target)


def programs(target: Target, count: int, seed: int) -> list[Program]:
    """Return the programs of the first graphs of a seed."""
    found = []
    with quiet(), progress_bar(count, "graphs") as bar:
        for name, builder in islice(exact_graphs(seed), count):
            program = program_of(name, builder, target)
            found += [program] if program is not None else []
            bar.step()
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    return command((__doc__ or "").partition("\n")[0], "graphs", 40, programs, arguments)


if __name__ == "__main__":
    sys.exit(main())
