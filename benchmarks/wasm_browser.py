"""WebAssembly libraries in a browser, beside onnxruntime-web: the part of ``benchmarks.wasm`` that ``--browser`` runs.

Each round starts a browser without a window on a page of its own, which loads both, compares their results, and times
their calls in turns. Browsers round times to 0.1 ms, so that a time is that of many calls. The page posts its figures
to the server that it came from.
"""

from __future__ import annotations

import gzip
import http.server
import json
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import graphc
from benchmarks.library import NETS
from benchmarks.models.standard import build_minilm
from graphc import nn
from graphc.c_library.build import build_library
from graphc.serialize import load_safetensors

TOKENS = 32
"""Tokens of the sentence that the encoder reads."""
_LIMIT = 300
"""Seconds after which a page that posts nothing has failed."""
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
_PEER = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
"""Files of the npm package onnxruntime-web that its page loads."""
_SCRIPT = """
const input = INTEGER ? BigInt64Array.from({ length: COUNT }, (_, i) => BigInt(1000 + 37 * i))
  : Float32Array.from({ length: COUNT }, (_, i) => Math.sin(i));
const since = async (action) => {
  const start = performance.now();
  await action();
  return performance.now() - start;
};
const figures = {}, subjects = {};
const loaders = {
  async wasm() {
    const { load } = await import("./net.js");
    const net = await load(new URL("net.wasm", location));
    subjects.wasm = () => Object.values(net.run({ [NAME]: input }))[0];
  },
  async relaxed() {
    const { load } = await import("./net.js?relaxed");
    const net = await load(new URL("net.relaxed.wasm", location));
    subjects.relaxed = () => Object.values(net.run({ [NAME]: input }))[0];
  },
  async peer() {
    const ort = await import("./ort.wasm.min.mjs");
    ort.env.wasm.numThreads = 1;
    const session = await ort.InferenceSession.create("net.onnx", { executionProviders: ["wasm"] });
    const feeds = { [session.inputNames[0]]: new ort.Tensor(INTEGER ? "int64" : "float32", input, SHAPE) };
    subjects.peer = async () => (await session.run(feeds))[session.outputNames[0]].data;
  },
};
const names = TURN ? Object.keys(loaders).reverse() : Object.keys(loaders);
for (const name of names) {
  figures[name] = { first: await since(async () => { await loaders[name](); await subjects[name](); }), times: [] };
}
for (const name of names) figures[name].output = Array.from(await subjects[name]());
// Both kinds of calls are awaited, and each measurement lasts at least 20 ms.
for (const name of names) {
  let count = 1;
  const run = async () => { for (let i = 0; i < count; i++) await subjects[name](); };
  while ((await since(run)) < 20) count *= 2; // which also lets the engine optimize
  figures[name].count = count;
}
for (let turn = 0; turn < TURNS; turn++) {
  for (const name of names) {
    const { count, times } = figures[name];
    times.push((1000 * (await since(async () => { for (let i = 0; i < count; i++) await subjects[name](); }))) / count);
  }
}
await fetch("figures", { method: "POST", body: JSON.stringify(figures) });
"""
_PAGE = """<!doctype html><script>
const fail = (error) => fetch("figures", { method: "POST", body: JSON.stringify({ error: String(error) }) });
addEventListener("error", (event) => fail(event.message));
addEventListener("unhandledrejection", (event) => fail(event.reason));
</script><script type="module">%s</script>
"""


def minilm(weights: Path) -> nn.Module:
    """Return the encoder of ``benchmarks.models`` with the weights of a BERT of its sizes, a .safetensors file."""
    arrays = load_safetensors(weights)
    model = build_minilm(nn)
    state = {
        "tokens.weight": arrays["embeddings.word_embeddings.weight"],
        "positions.weight": arrays["embeddings.position_embeddings.weight"]
        + arrays["embeddings.token_type_embeddings.weight"][0],
        **_pair(arrays, "norm", "embeddings.LayerNorm"),
    }
    parts = {
        **{name: f"attention.self.{name}" for name in ("query", "key", "value")},
        **{"out": "attention.output.dense", "norm1": "attention.output.LayerNorm"},
        **{"up": "intermediate.dense", "down": "output.dense", "norm2": "output.LayerNorm"},
    }
    for layer in range(6):
        for own, other in parts.items():
            state |= _pair(arrays, f"blocks.{layer}.{own}", f"encoder.layer.{layer}.{other}")
    model.load_state_dict(state)
    for part in model.modules():
        if isinstance(part, nn.LayerNorm):
            part.eps = 1e-12
    return model


def _pair(arrays: Mapping[str, Any], own: str, other: str) -> dict[str, Any]:
    return {f"{own}.{end}": arrays[f"{other}.{end}"] for end in ("weight", "bias")}


def cases(weights: Path | None) -> dict[str, tuple[Callable[[], nn.Module], Any]]:
    """Return the nets of ``benchmarks.library``, and the encoder if its weights are given: a model and its input."""
    nets: dict[str, tuple[Callable[[], nn.Module], Any]] = {
        name: (make, graphc.zeros(*shape)) for name, (make, shape) in NETS.items()
    }
    if weights is not None:
        nets[f"MiniLM-L6, {TOKENS} tokens"] = partial(minilm, weights), graphc.zeros(1, TOKENS, dtype="int64")
    return nets


def measure(name: str, browser: str, package: Path, weights: Path | None, turns: int, rounds: int) -> dict[str, float]:
    """Return the figures of a net: bytes to download, times until the first result in ms, and of calls in us.

    Raises RuntimeError if the browser fails, AssertionError if results differ.
    """
    make, x = cases(weights)[name]
    graphc.manual_seed(0)
    model = make().eval()
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        options: dict[str, Any] = {"emit": ("wasm", "relaxed", "js"), "weights": "beside", "target": "wasm"}
        library = build_library(model, x, path=folder / "net.wasm", name="net", **options)
        graphc.export(model, x, path=folder / "net.onnx")
        for file in _PEER:
            shutil.copy(package / "node_modules/onnxruntime-web/dist" / file, folder / file)
        shape, integer = list(x.shape), x.numpy().dtype == np.int64
        own_name = first_input(library.files["js"].read_text())
        constants = {"NAME": own_name, "COUNT": int(np.prod(shape)), "SHAPE": shape, "INTEGER": integer}
        runs = []
        for turn in range(rounds):
            values = {**constants, "TURN": turn % 2, "TURNS": turns}
            head = "".join(f"const {key} = {json.dumps(value)};\n" for key, value in values.items())
            (folder / "page.html").write_text(_PAGE % (head + _SCRIPT))
            runs.append(_figures(browser, folder))
            for variant in ("wasm", "relaxed"):
                actual, expected = runs[-1][variant]["output"], runs[-1]["peer"]["output"]
                np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
        own = [library.files[kind] for kind in ("wasm", "js", "weights")]
        other = [folder / file for file in (*_PEER, "net.onnx")]
        figures = {"download": _compressed(own), "peer download": _compressed(other)}
    for key in ("wasm", "relaxed", "peer"):
        figures[f"{key} first"] = median(run[key]["first"] for run in runs)
        figures[key] = median(time for run in runs for time in run[key]["times"])
    return figures


def first_input(loader: str) -> str:
    """Return the name of the first input in the text of a loader in JavaScript."""
    name = re.search(r'inputs: \[\s*\{ name: ("(?:[^"\\]|\\.)*")', loader)
    assert name is not None, loader
    return json.loads(name[1])


def _compressed(files: list[Path]) -> int:
    return sum(len(gzip.compress(file.read_bytes(), 9)) for file in files)


def _figures(browser: str, folder: Path) -> dict[str, Any]:
    """Open the page in a new browser, and return what it posts."""
    posted: list[dict[str, Any]] = []
    arrived = threading.Event()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()
            arrived.set()

        def log_message(self, format: str, *args: Any) -> None:
            """Write nothing."""

    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/page.html"
        command = [browser, *_FLAGS, f"--user-data-dir={profile}", address]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            arrived.wait(_LIMIT)
        finally:
            process.terminate()
            process.wait()
            server.shutdown()
    if not posted or "error" in posted[0]:
        raise RuntimeError(f"{browser} fails: {posted[0]['error'] if posted else 'the page posts no figures'}")
    return posted[0]
