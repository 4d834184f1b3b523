"""Digests of everything that graphc compiles from known models, to prove a change of the code neutral.

``python -m tools.digests`` prints SHA-256 for every graph of ``tools.cases`` and each of ``--targets``: of the
scheduled program and its LLVM text, both with numbered names, and of its object code. Named targets have fixed facts,
so that all machines agree. ``--quick`` takes few graphs and no object code. ``--json`` prints a report for ``--compare
FILE``, which lists the differences and exits 1 if there are any; ``--first`` stops at the first one. An exception of a
pass ends the command.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from graphc.codegen.machine.target import named_targets, target_named
from graphc.compiler.stages import Stages
from graphc.ir.graph.graph import Graph
from tools import cases
from tools.canonical import canonical_llvm, canonical_program

Digests = dict[str, str]
"""Digests by ``model/form target kind``."""


def digest(data: str | bytes) -> str:
    """Return the SHA-256 in hexadecimal."""
    return sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def graph_digests(name: str, graph: Graph, targets: Sequence[str], code: bool) -> Iterator[tuple[str, str]]:
    """Yield the digests of one graph on each target; of object code only where ``code``."""
    first: Stages | None = None
    for target in targets:
        stages = Stages(graph, target=target_named(target), tuned={})
        if first is not None:
            stages.__dict__["optimized"] = first.optimized
        first = first or stages
        for suffix, program in (("", stages), ("/prepared", stages.prepacking)):
            if program is None:
                continue
            yield f"{name}{suffix} {target} program", digest(canonical_program(program.scheduled))
            yield f"{name}{suffix} {target} llvm", digest(canonical_llvm(program.llvm))
            if code:
                yield f"{name}{suffix} {target} object", digest(program.object)


def compute(models: Sequence[str], targets: Sequence[str], quick: bool = False) -> Iterator[tuple[str, str]]:
    """Yield all digests of these models."""
    for name, graph in cases.graphs(models, quick):
        yield from graph_digests(name, graph, targets, code=not quick)


def until_first(stream: Iterator[tuple[str, str]], old: Digests) -> Digests:
    """Return the digests up to the first one that differs from ``old``; all of them where none does."""
    digests: Digests = {}
    for key, value in stream:
        digests[key] = value
        if old.get(key) != value:
            break
    return digests


def differences(old: Digests, new: Digests) -> list[str]:
    """Return one line for each digest that differs, is missing, or is new."""
    lines = []
    for key in sorted(old.keys() | new.keys()):
        if key not in new:
            lines.append(f"gone: {key}")
        elif key not in old:
            lines.append(f"new: {key}")
        elif old[key] != new[key]:
            lines.append(f"differs: {key}")
    return lines


def report(old: Digests, digests: Iterator[tuple[str, str]], first: bool) -> int:
    """Print the differences; return the exit status."""
    new = until_first(digests, old) if first else dict(digests)
    lines = differences({k: v for k, v in old.items() if k in new} if first else old, new)
    if first and not lines:
        lines = differences(old, new)
    print("\n".join([*lines, f"{len(new)} digests, {len(lines)} differ"]))
    return 1 if lines else 0


def names_of(choices: Sequence[str]):
    """Return a parser of comma-separated names out of ``choices``."""

    def parse(text: str) -> list[str]:
        names = [name for name in text.split(",") if name]
        unknown = [name for name in names if name not in choices]
        if unknown or not names:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; known: {', '.join(choices)}")
        return names

    return parse


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add the options of `output`."""
    parser.add_argument("--json", action="store_true", help="print JSON for --compare")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="exit 1 if a digest differs from this JSON file")
    parser.add_argument("--first", action="store_true", help="stop --compare at the first difference")


def output(digests: Iterator[tuple[str, str]], options: argparse.Namespace) -> int:
    """Print digests as lines or JSON, or compare them with a file; return the exit status."""
    if options.compare:
        return report(json.loads(options.compare.read_text(encoding="utf-8")), digests, options.first)
    if options.json:
        print(json.dumps(dict(digests), indent=1, sort_keys=True))
        return 0
    for key, value in digests:
        print(value, key, flush=True)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Print or compare; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.digests", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--targets", type=names_of(tuple(named_targets())), default=["avx512", "avx2", "sse2", "neon"], metavar="A,B"
    )
    parser.add_argument(
        "--models", type=names_of(cases.names()), metavar="A,B", help="models and examples to digest, or random"
    )
    parser.add_argument("--quick", action="store_true", help="take few graphs, without object code")
    add_outputs(parser)
    options = parser.parse_args(argv)
    os.environ.update(GRAPHC_CACHE="off", GRAPHC_COMPILE_THREADS="1", GRAPHC_PROGRESS="off")
    models = options.models or ([*cases.QUICK, cases.RANDOM] if options.quick else cases.names())
    return output(compute(models, options.targets, options.quick), options)


if __name__ == "__main__":
    sys.exit(main())
