"""Random quantized graphs as machine code of other processors: the codes of this machine, computed under qemu.

``python -m tools.nets.quantized.emulated --target rv64gc --count 40 --seed 0``. The C compiler of that machine and
qemu-user are needed (``tools.codegen.cross_ops``). All graphs of a call are compiled, and then run together. Only
graphs whose scales are powers of two are compared: their arithmetic is exact.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

import graphc
from graphc.codegen.machine.target import Target, named_targets, target_named
from graphc.compiler.freeze import freeze
from tools.codegen.cross_ops import Program, build_program, missing_tool, run
from tools.nets.quantized.builder import QuantizedBuilder, drawn, names
from tools.nets.quantized.evaluators import compiled
from tools.nets.quantized.exact import STEPS
from tools.nets.sized import quiet
from tools.progress import progress_bar


def exact_graphs(seed: int) -> Iterator[tuple[str, QuantizedBuilder]]:
    """Yield the names and the graphs of a seed whose arithmetic is exact."""
    for name in names(seed):
        builder = drawn(seed, int(name.partition("/")[2]), STEPS)
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
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    cpus = [name for name, target in named_targets().items() if target.gpu is None]
    parser.add_argument("--target", choices=cpus, required=True)
    parser.add_argument("--count", type=int, default=40, help="number of graphs (40)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    target = target_named(options.target)
    if reason := missing_tool(target):
        print(f"{options.target} cannot run here: {reason}", file=sys.stderr)
        return 2
    found = programs(target, options.count, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        lines = run(found, target, Path(folder))
    print("\n".join([*lines, f"{options.target}: {len(found)} graphs, {len(lines)} differ"]))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
