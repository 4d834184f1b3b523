"""Public models through ``torch.compile(backend="graphc")``: ``python -m benchmarks.hub [--only TEXT]``."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.process import ROOT, make_environment
from benchmarks.harness.sweep import OWN, Result, find_library, make_parser, parse_with, restart_on_one_thread
from graphc.base.installation import group_command

COLLECTIONS = ("torchvision", "timm", "transformers")
EAGER, INDUCTOR = "eager", "inductor"
PEERS = (EAGER, INDUCTOR)
TOLERANCE = 1e-4
"""Relative to the largest value of a result."""
MOST_ON_TORCH = 0.02
"""Share of the nodes and of the time; a model with more on PyTorch counts as failed."""
FIRST_CALL = 0.2
"""Allowed ratio of graphc's first call to Inductor's."""


def agrees(result: Result) -> bool:
    """Return whether graphc agrees with eager PyTorch: within TOLERANCE of f32 or of f64, or nearer to f64 than eager's
    f32 if that is inexact itself; and with little work left on PyTorch."""
    error = result.errors.get(OWN)
    if error is None or torch_share(result) > MOST_ON_TORCH:
        return False
    exact, eager = result.facts.get("f64_error", math.inf), result.facts.get("f64_error_eager", 0.0)
    return error <= TOLERANCE or exact <= max(TOLERANCE, eager)


def torch_share(result: Result) -> float:
    """Return PyTorch's share of a model: the larger of its shares of the nodes and of the time."""
    nodes = result.facts.get("nodes", {})
    total = sum(nodes.values())
    return max(result.facts.get("torch_share", 0.0), nodes.get("torch", 0) / total if total else 0.0)


def speed(result: Result, peer: str) -> float | None:
    """Return median over the rounds of a peer's time over graphc's: above 1 graphc is faster."""
    own, theirs = result.rounds_ms.get(OWN), result.rounds_ms.get(peer)
    if not own or not theirs:
        return None
    return statistics.median(t / o for t, o in zip(theirs, own, strict=True))


def first_ratio(result: Result) -> float | None:
    """Return the ratio of graphc's first call to Inductor's."""
    first = result.facts.get("first_s", {})
    return first[OWN] / first[INDUCTOR] if OWN in first and INDUCTOR in first else None


# ---- running


def run_model(key: str, options: argparse.Namespace) -> Result:
    """Return one model in a process of its own, with its own empty caches: one that crashes or takes too long loses its
    row only."""
    with tempfile.TemporaryDirectory(prefix="graphc-hub-") as folder:
        environment = make_environment(1, Path(folder)) | {"HF_HUB_OFFLINE": "1"}
        command = [sys.executable, "-m", options.row, key, ",".join(options.peers)]
        command += [str(options.rounds), str(options.seconds), options.weights]
        with (Path(folder) / "log").open("w+b") as log:
            process = subprocess.Popen(
                *(command,), stdout=subprocess.PIPE, stderr=log, cwd=ROOT, env=environment, start_new_session=True
            )
            try:
                answer, _ = process.communicate(timeout=options.limit)
            except subprocess.TimeoutExpired:
                answer, problem = b"", f"no answer within {options.limit:g} s"
            else:
                problem = "" if process.returncode == 0 else _describe_end(process.returncode)
            finally:
                # Its compilers end with it.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if problem:
                log.seek(max(0, log.tell() - 2000))
                print(log.read().decode(errors="replace"), file=sys.stderr)
    return Result(key, {}, problems={OWN: problem}) if problem else Result(**json.loads(answer))


def _describe_end(status: int) -> str:
    died = f"died of {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    return f"the process {died}"


def read_results(path: Path | None) -> dict[str, Result]:
    """Return the rows of a file of JSON lines; the later one of a model counts."""
    if path is None or not path.exists():
        return {}
    rows = [Result(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    return {row.name: row for row in rows}


def run_all(keys: Sequence[str], options: argparse.Namespace) -> list[Result]:
    """Return the rows of the models: those in the file of results, and new measurements, which are added to it."""
    previous = read_results(options.results)
    for key in progress([key for key in keys if key not in previous]):
        previous[key] = run_model(key, options)
        if options.results is not None:
            with options.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(vars(previous[key])) + "\n")
    return [previous[key] for key in keys]


def progress(keys: Sequence[str]) -> Iterable[str]:
    """Return the keys, with a bar on stderr where tqdm is installed."""
    tqdm = find_library("tqdm")
    return keys if tqdm is None else tqdm.tqdm(keys, unit="model", file=sys.stderr)


# ---- printing

COLUMNS = ("model", "error", "graphs", "nodes graphc", "torch", "share torch", OWN, *PEERS, "vs eager", "vs inductor")
FIRST = ("first s", "inductor", "ratio")


def format_rows(results: Sequence[Result]) -> str:
    """Return the table, a summary, and the failures."""
    lines = table([*COLUMNS, *FIRST], map(format_row, results))
    return "\n".join([*lines, "", *summary(results), *problems(results)])


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    return ["| " + " | ".join(cells) + " |" for cells in (columns, ["---"] * len(columns), *rows)]


def format_row(result: Result) -> list[str]:
    """Return the cells of a model."""
    facts = result.facts
    nodes, first = facts.get("nodes", {}), facts.get("first_s", {})
    error = result.errors.get(OWN)
    shown = "-" if error is None else f"{error:.1e}{'' if agrees(result) else '!'}"
    if "f64_error" in facts:
        shown += f" (f64: {facts['f64_error']:.1e}, eager {facts['f64_error_eager']:.1e})"
    return [
        *(result.name, shown, cell(facts.get("graphs"), "d")),
        *(cell(nodes.get(where), "d") for where in (OWN, "torch")),
        cell(torch_share(result) if nodes else None, ".1%"),
        *(cell(result.ms(name), ".3g") for name in (OWN, *PEERS)),
        *(cell(speed(result, peer), ".2f") for peer in PEERS),
        *(cell(first.get(name), ".2f") for name in (OWN, INDUCTOR)),
        cell(first_ratio(result), ".2f"),
    ]


def cell(value: Any, form: str) -> str:
    """Return a value in this form, or a dash for none."""
    return "-" if value is None else format(value, form)


def summary(results: Sequence[Result]) -> list[str]:
    """Count and geometric means."""
    lines = [f"{sum(map(agrees, results))} of {len(results)} agree", *ratios(results)]
    firsts = {r.name: ratio for r in results if (ratio := first_ratio(r)) is not None}
    if firsts:
        slow = [name for name, ratio in firsts.items() if ratio > FIRST_CALL]
        lines.append(
            f"first call over Inductor's: geometric mean {statistics.geometric_mean(firsts.values()):.2f}; "
            f"above {FIRST_CALL}: {', '.join(slow) or 'none'}"
        )
    return lines


def ratios(results: Sequence[Result]) -> list[str]:
    """Return each peer's geometric mean, and before whom it is."""
    lines = []
    for peer in PEERS:
        by_name = {r.name: ratio for r in results if (ratio := speed(r, peer)) is not None}
        if by_name:
            behind = [name for name, ratio in by_name.items() if ratio < 1]
            lines.append(
                f"{peer}: geometric mean of its time over graphc's {statistics.geometric_mean(by_name.values()):.2f} "
                f"over {len(by_name)}; below 1: {', '.join(behind) or 'none'}"
            )
    return lines


def problems(results: Sequence[Result]) -> list[str]:
    """Return the kinds of failures, each with its models."""
    models: dict[tuple[str, str], list[str]] = {}
    for r in results:
        for name, problem in r.problems.items():
            models.setdefault((name, problem), []).append(r.name)
    return [f"{name}: {problem}: {', '.join(where)}" for (name, problem), where in sorted(models.items())]


# ---- command line


def parse(
    argv: Sequence[str] | None,
    models: Mapping[str, Any],
    doc: str | None = __doc__,
    row: str = "benchmarks.workers.hub_row",
) -> argparse.Namespace:
    """Parse the options, with the keys of the selected models and the module that measures one of them."""
    parser = make_parser(doc or "", PEERS)
    parser.set_defaults(row=row)
    parser.add_argument("--weights", choices=("live", "frozen"), default="live", help="weights option of the backend")
    parser.add_argument(
        "--agreement", action="store_true", help="check agreement and graphc's first call, without other times"
    )
    add_selection(parser)
    options = parse_with(parser, argv, PEERS)
    if options.agreement:
        options.peers, options.rounds = [EAGER], 0
    options.keys = selected(parser, options, models)
    return options


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which models, for how long, and where their rows are kept."""
    parser.add_argument("--only", default="", metavar="TEXT", help="measure only models whose name contains this")
    parser.add_argument("--collection", choices=COLLECTIONS, help="measure only models of this collection")
    parser.add_argument(
        "--limit", type=float, default=900, metavar="SECONDS", help="time limit for one model in seconds"
    )
    parser.add_argument(
        "--results",
        type=Path,
        metavar="FILE",
        help="file of JSON lines, one per model: keep its rows from runs with the same options, add missing ones",
    )


def selected(parser: argparse.ArgumentParser, options: argparse.Namespace, models: Iterable[str]) -> list[str]:
    """Return the keys of the models that the options select; end the command with an error where there are none."""
    keys = [k for k in models if options.collection in (None, k.partition("/")[0]) and options.only in k]
    if not keys:
        parser.error("nothing to measure")
    return keys


def main(argv: Sequence[str] | None = None) -> int:
    """Run the models; the status is 1 where one does not agree."""
    restart_on_one_thread("benchmarks.hub")
    hub_models = find_library("benchmarks.models.hub")
    if hub_models is None:
        print(f"torch is not installed: {group_command('hub')}", file=sys.stderr)
        return 2
    options = parse(argv, hub_models.MODELS)
    results = run_all(options.keys, options)
    if options.json:
        rows = [
            {**vars(r), "agrees": agrees(r), "ratios": {p: speed(r, p) for p in PEERS}, "first_ratio": first_ratio(r)}
            for r in results
        ]
        json.dump(rows, sys.stdout, indent=1)
        print()
    else:
        print(format_rows(results))
    return 0 if all(map(agrees, results)) else 1


if __name__ == "__main__":
    sys.exit(main())
