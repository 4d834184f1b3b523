"""WebAssembly libraries in Node, beside the same nets as machine code of SSE2: ``python -m benchmarks.wasm``.

The five nets of ``benchmarks.library``, batch 1: bytes of the module and of module and loader after gzip, time until
the first result, and the median time of a call, in alternating rounds. The demo of the C library, which ``cc``
compiles, measures SSE2: vectors of 16 bytes, as WebAssembly has. ``--onnxruntime-web FOLDER`` calls ONNX files of the
nets by the npm package ``onnxruntime-web`` that is installed in that folder, with one thread, and compares results.
``--browser CHROMIUM`` calls both in a browser instead, ``--minilm FILE.safetensors`` adds a MiniLM-L6 with its weights.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import graphc
from benchmarks import wasm_browser
from benchmarks.harness.results import format_table
from benchmarks.library import NETS
from graphc.c_library.build import build_library

CALLS, ROUNDS = 2000, 5
"""Calls of a round, after as many that let the engine optimize, and rounds, of which the median counts."""
TURNS = 20
"""Measurements of each net and library on a page of a browser, in turns."""
_SCRIPT = """
const start = performance.now();
const { load } = await import("./net.js");
const input = Float32Array.from({ length: INPUTS }, (_, i) => Math.sin(i));
const net = await load();
net.run({ [NAME]: input });
const first = performance.now() - start;
const times = [];
for (let i = -CALLS; i < CALLS; i++) {
  const before = performance.now();
  net.run({ [NAME]: input });
  if (i >= 0) times.push(performance.now() - before);
}
times.sort((a, b) => a - b);
const output = Array.from(Object.values(net.run({ [NAME]: input }))[0]);
console.log(JSON.stringify({ first, p50: 1000 * times[CALLS >> 1], output }));
"""

_PEER = """
import { readFileSync } from "node:fs";
import * as ort from "onnxruntime-web";
const start = performance.now();
ort.env.wasm.numThreads = 1;
const session = await ort.InferenceSession.create(readFileSync(FILE), { executionProviders: ["wasm"] });
const input = Float32Array.from({ length: INPUTS }, (_, i) => Math.sin(i));
const feeds = { [session.inputNames[0]]: new ort.Tensor("float32", input, SHAPE) };
let results = await session.run(feeds);
const first = performance.now() - start;
const times = [];
for (let i = -CALLS; i < CALLS; i++) {
  const before = performance.now();
  results = await session.run(feeds);
  if (i >= 0) times.push(performance.now() - before);
}
times.sort((a, b) => a - b);
const output = Array.from(results[session.outputNames[0]].data);
console.log(JSON.stringify({ first, p50: 1000 * times[CALLS >> 1], output }));
"""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wasm", description=__doc__)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--onnxruntime-web", type=Path, metavar="FOLDER", help="folder with the package of npm")
    parser.add_argument("--browser", metavar="CHROMIUM", help="call both in this browser; needs --onnxruntime-web")
    parser.add_argument("--minilm", type=Path, metavar="FILE", help="weights of a MiniLM-L6, for --browser")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    if options.browser is not None:
        return _in_browser(options, parser)
    for tool in ("node", "cc"):
        if shutil.which(tool) is None:
            print(f"{tool} is needed", file=sys.stderr)
            return 2
    peer = options.onnxruntime_web
    figures = {name: _measure(name, options.calls, options.rounds, peer) for name in NETS}
    if options.json:
        print(json.dumps(figures, indent=2))
        return 0
    rows = [
        [
            *(name, f"{f['weights']:,}", f"{f['module']:,}", f"{f['compressed']:,}", f"{f['first']:.1f}"),
            *(f"{f['node']:.2f}", f"{f['sse2']:.2f}", f"{f['node'] / f['sse2']:.2f}"),
            *([f"{f['peer first']:.0f}", f"{f['peer']:.2f}", f"{f['peer'] / f['node']:.1f}"] if peer else []),
        ]
        for name, f in figures.items()
    ]
    titles = ["net", "weights B", "wasm B", "wasm+js gz B", "first ms", "node us", "sse2 us", "node / sse2"]
    titles += ["onnxruntime-web first ms", "onnxruntime-web us", "onnxruntime-web / node"] if peer else []
    print(format_table(titles, rows))
    return 0


def _in_browser(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Print the figures of all nets in a browser."""
    if options.onnxruntime_web is None or shutil.which(options.browser) is None:
        parser.error("--browser needs an installed browser, and --onnxruntime-web")
    figures = {
        name: wasm_browser.measure(
            name, options.browser, options.onnxruntime_web, options.minilm, TURNS, options.rounds
        )
        for name in wasm_browser.cases(options.minilm)
    }
    if options.json:
        print(json.dumps(figures, indent=2))
        return 0
    rows = [
        [
            *(name, f"{f['download']:,}", f"{f['peer download']:,}"),
            *(f"{f[key]:.0f}" for key in ("wasm first", "peer first")),
            *(f"{f[key]:.2f}" for key in ("wasm", "relaxed", "peer")),
            *(f"{f['peer'] / f[key]:.2f}" for key in ("wasm", "relaxed")),
        ]
        for name, f in figures.items()
    ]
    titles = ["net", "gz B", "onnxruntime-web gz B", "first ms", "onnxruntime-web first ms", "wasm us", "relaxed us"]
    print(format_table([*titles, "onnxruntime-web us", "onnxruntime-web / wasm", "/ relaxed"], rows))
    return 0


def _measure(name: str, calls: int, rounds: int, peer: Path | None) -> dict[str, float]:
    make, shape = NETS[name]
    graphc.manual_seed(0)
    model, x = make().eval(), graphc.zeros(*shape)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        (folder / "package.json").write_text('{"type": "module"}')
        wasm = build_library(model, x, path=folder / "net.wasm", target="wasm", name="net")
        native = build_library(model, x, path=folder / "net.so", target="sse2", emit=("so", "h", "c"), name="net")
        subprocess.run(["cc", "-O2", "net.c", "./net.so", "-Wl,-rpath,$ORIGIN", "-o", "demo"], cwd=folder, check=True)
        node = _script(wasm.files["js"].read_text(), x.numpy().size, calls)
        (folder / "run.mjs").write_text(node)
        if peer is not None:
            graphc.export(model, x, path=folder / "net.onnx")
            (folder / "node_modules").symlink_to(peer.resolve() / "node_modules")
            constants = f'const FILE = "net.onnx", INPUTS = {x.numpy().size}, SHAPE = {list(shape)}, CALLS = {calls};'
            (folder / "peer.mjs").write_text(constants + _PEER)
        runs: list[tuple[dict[str, Any], float]] = []
        peers: list[dict[str, Any]] = []
        for _ in range(rounds):
            demo = _output(["./demo", f"--bench={calls}"], folder)
            p50 = re.search(r"p50 ([\d.]+)", demo)
            assert p50 is not None, demo
            runs.append((json.loads(_output(["node", "run.mjs"], folder)), float(p50[1])))
            if peer is not None:
                peers.append(json.loads(_output(["node", "peer.mjs"], folder)))
                np.testing.assert_allclose(runs[-1][0]["output"], peers[-1]["output"], rtol=1e-4, atol=1e-5)
        files = [wasm.files[kind].read_bytes() for kind in ("wasm", "js")]
    others = {"peer first": median(r["first"] for r in peers), "peer": median(r["p50"] for r in peers)} if peers else {}
    return {
        **others,
        "weights": native.weight_bytes,
        "module": len(files[0]),
        "compressed": sum(len(gzip.compress(content, 9)) for content in files),
        "first": median(run["first"] for run, _ in runs),
        "node": median(run["p50"] for run, _ in runs),
        "sse2": median(p50 for _, p50 in runs),
    }


def _script(loader: str, inputs: int, calls: int) -> str:
    name = json.dumps(wasm_browser.first_input(loader))
    constants = f"const NAME = {name}, INPUTS = {inputs}, CALLS = {calls};"
    return constants + _SCRIPT


def _output(command: Sequence[str], folder: Path) -> str:
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
