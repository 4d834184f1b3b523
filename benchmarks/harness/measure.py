"""Workloads of the table: peers in processes of their own are set up, compared, and timed in turns."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.framework import NUMBERS, ONNX
from benchmarks.harness.process import ROOT, Child, call_in_child
from benchmarks.harness.results import OWN, Result, cell, difference, format_problems, format_table, time_cell
from benchmarks.harness.timing import alternate
from benchmarks.peers import PEERS, needs_onnx
from benchmarks.workloads import ALL

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Peer:
    """A peer in a process of its own."""

    library: str
    function: str
    """``package.module:function`` that prepares a workload."""
    environment: Mapping[str, str]
    tree: Path = ROOT
    """Folder with the packages that it uses."""
    variant: str = ""
    """Option of the function."""


def find_peer(name: str, environment: Mapping[str, str]) -> Peer:
    """Return the peer of that name, perhaps with a variant: ``graphc:int8``."""
    base, _, variant = name.partition(":")
    return Peer(*PEERS[base], environment, variant=variant)


@dataclass(frozen=True)
class Turns:
    """Settings for timing peers."""

    rounds: int
    seconds: float = 0.3
    """Length of a turn."""
    threads: int = 1
    limit_s: float = 900


@dataclass
class Table:
    """All rows, the versions of the peers, and the reasons why others are absent."""

    rows: list[Result]
    versions: dict[str, str]
    absent: dict[str, str]


def run(peers: Mapping[str, Peer], workloads: Iterable[str], turns: Turns, tell: Tell) -> Table:
    """Measure the workloads; a peer whose process dies is started again for the next one."""
    table = Table([], {}, {})
    children: dict[str, Child] = {}
    with ExitStack() as stack:

        def start(name: str) -> dict[str, Any]:
            peer = peers[name]
            children[name] = stack.enter_context(Child(peer.environment, turns.limit_s, peer.tree))
            return children[name].ask("benchmarks.harness.peer:hello", library=peer.library)

        for name in peers:
            hello = start(name)
            if "version" in hello:
                table.versions[name] = hello["version"]
            else:
                table.absent[name] = str(hello.get("absent") or hello.get("error"))
                del children[name]
        for workload in workloads:
            for name in [name for name, child in children.items() if not child.alive]:
                start(name)
            with tempfile.TemporaryDirectory(prefix="graphc-benchmarks-") as folder:
                table.rows.append(measure(workload, peers, children, Path(folder), turns, tell))
    return table


def measure(
    workload: str, peers: Mapping[str, Peer], children: Mapping[str, Child], folder: Path, turns: Turns, tell: Tell
) -> Result:
    """Return the row of one workload; `folder` must be empty and holds its files."""
    result = Result(workload)
    onnx = any(map(needs_onnx, children)) and not ALL[workload].train
    tell(f"{workload}: reference")
    written = call_in_child(
        *("benchmarks.harness.peer:write_reference", next(iter(peers.values())).environment, turns.limit_s),
        **{"workload": workload, "folder": str(folder), "onnx": onnx},
    )
    if "error" in written:  # reported in the table, so that earlier rows are not lost
        problem = f"the reference of {workload} can not be made: {written['error']}"
        result.problems = dict.fromkeys(children, problem)
        return result
    reference = np.load(folder / NUMBERS)
    for name, child in children.items():
        if needs_onnx(name) and onnx and not (folder / ONNX).exists():
            result.problems[name] = f"no ONNX file: {written['onnx']}"
            continue
        tell(f"{workload}: {name}")
        set_up(result, name, child, peers[name], folder, reference, turns.threads)
    tell(f"{workload}: {turns.rounds} rounds")

    def time_one(name: str) -> dict[str, Any]:
        answer = children[name].ask("benchmarks.harness.peer:time_calls", seconds=turns.seconds)
        result.facts[name]["resident MB"] = answer.get("resident MB")
        return answer

    alternate(result, list(children), turns.rounds, time_one)
    return result


def set_up(
    result: Result, name: str, child: Child, peer: Peer, folder: Path, reference: np.ndarray, threads: int
) -> None:
    """Let one peer build the workload, and compare its numbers."""
    order = {"function": peer.function, "variant": peer.variant, "workload": result.name, "threads": threads}
    answer = child.ask("benchmarks.harness.peer:setup", folder=str(folder), **order)
    if problem := answer.get("error") or answer.get("not_provided"):
        result.problems[name] = str(problem)
        return
    result.facts[name] = answer["facts"]
    result.errors[name] = difference([np.load(answer["numbers"])], [reference])


def format_rows(table: Table, names: Sequence[str]) -> str:
    """Return the table (milliseconds per call; ratio above 1: graphc is faster) and the notes."""
    names = sorted(names, key=lambda name: not name.startswith(OWN))
    columns = ["workload", *names, "best peer / graphc", "graphc error", "graphc first call s"]
    rows = []
    for row in table.rows:
        own = next((name for name in names if name in row.errors), "")
        first = row.facts.get(own, {}).get("first s") if own.startswith(OWN) else None
        error = row.errors[own] if own.startswith(OWN) else None
        times = [time_cell(row, name) for name in names]
        rows.append([row.name, *times, cell(row.ratio, ".2f"), cell(error, ".1e"), cell(first, ".2f")])
    notes = [f"absent: {name} ({reason})" for name, reason in table.absent.items()]
    for row in table.rows:
        for name in names:
            if free := row.facts.get(name, {}).get("unlimited"):
                notes.append(f"^ {row.name}, {name}: more instructions than the target's in {free}")
    return "\n".join([format_table(columns, rows), "", *notes, *format_problems(table.rows)]).rstrip("\n") + "\n"


def format_facts(table: Table, names: Sequence[str]) -> str:
    """Return a row for each workload and peer: time, speed over the first peer, error, and what else is known."""
    known = [row.facts[name] for row in table.rows for name in names if name in row.facts]
    columns = list(dict.fromkeys(key for facts in known for key in facts if key != "unlimited"))
    rows = []
    for row in table.rows:
        for name in names:
            facts = row.facts.get(name, {})
            cells = [time_cell(row, name), cell(row.over(names[0], name)), cell(row.errors.get(name), ".1e")]
            rows.append([row.name, name, *cells, *(cell(facts.get(column)) for column in columns)])
    return format_table(["workload", "peer", "ms", f"times as fast as {names[0]}", "error", *columns], rows) + "\n"
