"""Memory of a session over calls of random sizes: ``python -m benchmarks.memory [--only TEXT] [--count N]``.

Each session prints a line once it ends: resident memory after a call at the largest sizes and a few more, after half
of the calls, and after all. Large models take minutes, because all calls compute.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx

import graphc
from benchmarks.harness.memory import resident
from benchmarks.harness.process import pin
from benchmarks.harness.results import format_table
from benchmarks.harness.sweep import make_parser, restart, select, tell
from benchmarks.sizes import CASES, Case, Run, Setting, called

FEW = 10
"""Calls after which memory is looked at for the first time."""
EVERY_S = 10.0
"""Seconds between two signs of life."""


class _Branches(graphc.nn.Module):
    """A program for even numbers of rows, another one for odd numbers."""

    def forward(self, x: graphc.Tensor) -> graphc.Tensor:
        """Return the rows, scaled by a factor that depends on their number."""
        return x * 2 if x.shape[0] % 2 == 0 else x - 1


class _Mask(graphc.nn.Module):
    """A chain of two programs: the number of positive elements is the size of the second."""

    def forward(self, x: graphc.Tensor) -> graphc.Tensor:
        """Return the squares of positive elements."""
        return x[x > 0] ** 2


def build_forest(nn: Any) -> Any:
    """Return a tree of 15 nodes from an ONNX file."""
    count, inner = 15, 7
    node = onnx.helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_treeids=[0] * count,
        nodes_nodeids=list(range(count)),
        nodes_featureids=[i % 4 for i in range(count)],
        nodes_values=[i / inner - 1 for i in range(count)],
        nodes_modes=["BRANCH_LEQ"] * inner + ["LEAF"] * (count - inner),
        nodes_truenodeids=[2 * i + 1 if i < inner else 0 for i in range(count)],
        nodes_falsenodeids=[2 * i + 2 if i < inner else 0 for i in range(count)],
        target_treeids=[0] * (count - inner),
        target_nodeids=list(range(inner, count)),
        target_ids=[0] * (count - inner),
        target_weights=[float(i) for i in range(count - inner)],
    )
    values = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["n", k]) for n, k in (("x", 4), ("y", 1))]
    graph = onnx.helper.make_graph([node], "forest", values[:1], values[1:])
    sets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    return graphc.from_onnx(onnx.helper.make_model(graph, opset_imports=sets, ir_version=8))


_ROWS: Mapping[str, Any] = {"shape": ("rows", 4), "dims": {"rows": (1, 400, 1)}}
SMALL = (
    Case("forest", build_forest, **_ROWS),
    Case("two programs", lambda nn: _Branches(), **_ROWS),
    Case("chain", lambda nn: _Mask(), **_ROWS),
)


def _automatic(setting: Setting) -> Run:
    return called(graphc.compile(setting.model, dims="auto"))


def _quick(setting: Setting) -> Run:
    return called(setting.for_all(tier="auto"))


def _single(setting: Setting) -> Run:
    return called(graphc.compile(setting.model))


def _eager(setting: Setting) -> Run:
    return called(setting.model)


def _file(setting: Setting) -> Run:
    example = graphc.from_numpy(setting.case.input(setting.expected))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gcm"
        graphc.export(setting.model, example, path=path, dims=[setting.spec])
        return graphc.load(path)


def _compiled(setting: Setting) -> Run:
    return called(setting.for_all())


_KINDS: Mapping[str, Callable[[Setting], Run]] = {
    "": _compiled,
    " file": _file,
    " tier auto": _quick,
    " dims auto": _automatic,
    " eager": _eager,
}
SESSIONS: dict[str, tuple[Case, Callable[[Setting], Run]]] = {
    f"{case.name}{kind}": (case, make)
    for case in (*SMALL, CASES["net"], CASES["lstm"])
    for kind, make in _KINDS.items()
    if (case.name, kind) != ("two programs", " file")  # a file has one trace
} | {name: (case, _compiled) for name, case in CASES.items() if name not in ("net", "lstm")}
SESSIONS["forest program a size"] = SMALL[0], _single


def run_memory(name: str, count: int) -> dict[str, Any]:
    """Return megabytes of the process after a call at the largest sizes and few, half or all of ``count`` at random
    ones."""
    case, make = SESSIONS[name]
    setting = Setting(case)
    run = make(setting)
    run(case.input(setting.largest))
    figures: dict[str, Any] = {"count": count}
    looks = {FEW: "few_mb", count // 2: "half_mb", count: "all_mb"}
    last = time.monotonic()
    for number, sizes in enumerate(case.draw(count), 1):
        run(case.input(sizes))
        if number in looks:
            figures[looks[number]] = resident() / 1e6
        if time.monotonic() - last > EVERY_S:
            last = time.monotonic()
            tell(f"{name}: {number} of {count} calls, {resident() / 1e6:.1f} MB")
    return figures


def format_row(name: str, figures: Mapping[str, Any]) -> list[str]:
    return [name, str(figures["count"]), *(f"{figures[k]:.1f}" for k in ("few_mb", "half_mb", "all_mb"))]


def main(argv: Sequence[str] | None = None) -> int:
    parser = make_parser("benchmarks.memory", __doc__)
    parser.add_argument("--count", type=int, default=1000, metavar="N", help="number of calls of a session (1000)")
    options = select(parser, list(SESSIONS), argv)
    os.environ["GRAPHC_CACHE"] = "off"  # only compiled code counts
    pin(1)
    results = {}
    with graphc.no_grad():
        for name in options.cases:
            results[name] = run_memory(name, max(2 * FEW + 2, options.count))
            tell(" ".join(format_row(name, results[name])) + " MB")
    columns = ["session", "calls", f"MB after {FEW}", "half", "all"]
    rows = [format_row(name, figures) for name, figures in results.items()]
    print(json.dumps(results, indent=1) if options.json else format_table(columns, rows))
    return 0


if __name__ == "__main__":
    restart("benchmarks.memory")
    sys.exit(main())
