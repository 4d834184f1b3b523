"""Models exported by torch to ONNX, read and compiled by graphc, ONNX Runtime and OpenVINO, on one core in turns.

``python -m benchmarks.onnx_files [--only TEXT] [--peers onnxruntime,openvino] [--rounds R] [--seconds S] [--json]``

Eight files have fixed sizes, four have open ones. Needs torch and onnxscript for the export. Columns: KiB of the file,
the largest difference from the first peer, seconds of reading, compiling and the first call of each.
"""

from __future__ import annotations

import importlib
import io
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import graphc as gc
from benchmarks.harness.framework import build_model, convert_inputs
from benchmarks.harness.sweep import (
    OWN,
    Call,
    Result,
    find_library,
    make_onnx_session,
    make_openvino_request,
    measure,
    parse,
    report,
    restart_on_one_thread,
    tell,
    torch_on_one_thread,
)
from benchmarks.workloads import WORKLOADS
from graphc.base.installation import group_command

PEERS = ("onnxruntime", "openvino")


@dataclass(frozen=True)
class File:
    """A model and which of its sizes the file leaves open."""

    workload: str
    dims: Mapping[int, str] = field(default_factory=dict)
    """Names of open dimensions of the first input, by their number."""

    @property
    def name(self) -> str:
        """Return the name in the table."""
        return f"{self.workload} [{', '.join(self.dims.values())}]" if self.dims else self.workload


FILES = (
    *(File(name) for name in ("policy_b1", "net_b1", "resnet50_b1", "mobilenet_b1", "unet_b1")),
    *(File(name) for name in ("minilm_b1_t128", "gpt_b1_t128", "lstm_b1_t64")),
    *(File("mlp_b64", {0: "batch"}), File("net_b64", {0: "batch"})),
    *(File("textcnn_b8", {0: "batch"}), File("minilm_b8_t128", {0: "batch", 1: "time"})),
)
CASES = {file.name: file for file in FILES}


def export(file: File) -> tuple[bytes, list[np.ndarray]]:
    """Return the ONNX file that torch writes, and inputs."""
    torch = importlib.import_module("torch")
    workload = WORKLOADS[file.workload]
    model = build_model(torch, workload)
    inputs = tuple(convert_inputs(torch, workload))
    shapes = None
    if file.dims:
        first = {number: torch.export.Dim.DYNAMIC for number in file.dims}
        shapes = (first, *[None] * (len(inputs) - 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(model, inputs, dynamo=True, verbose=False, dynamic_shapes=shapes)
    written = io.BytesIO()
    program.save(written)
    return written.getvalue(), workload.draw_inputs()


def own_call(data: bytes, inputs: Sequence[np.ndarray]) -> Call:
    """Return the model of a file as a model file of graphc, loaded, called with arrays."""
    module = gc.from_onnx(data)
    with tempfile.TemporaryDirectory() as folder:
        gc.export(module, *module.examples(), path=f"{folder}/net.gcm", dims=module.dims)
        loaded = gc.load(f"{folder}/net.gcm")
    arrays = list(inputs)
    return lambda: loaded(*arrays)


def onnxruntime_call(data: bytes, inputs: Sequence[np.ndarray]) -> Call:
    """Return a session of ONNX Runtime."""
    session = make_onnx_session(importlib.import_module("onnxruntime"), data)
    feeds = dict(zip([port.name for port in session.get_inputs()], inputs, strict=True))
    return lambda: session.run(None, feeds)


def openvino_call(data: bytes, inputs: Sequence[np.ndarray]) -> Call:
    """Return a request of OpenVINO, arrays shared with numpy."""
    request = make_openvino_request(importlib.import_module("openvino"), data)
    arrays = list(inputs)

    def call() -> list[np.ndarray]:
        results = request.infer(arrays, share_inputs=True, share_outputs=True)
        return list(results.values())

    return call


CALLS: dict[str, Callable[[bytes, Sequence[np.ndarray]], Call]] = {
    "onnxruntime": onnxruntime_call,
    "openvino": openvino_call,
    OWN: own_call,
}


def measure_file(file: File, peers: Sequence[str], rounds: int, seconds: float) -> Result:
    """Return the row of a file."""
    data, inputs = export(file)
    result = Result(file.name, {"KiB": len(data) // 1024})

    def make(name: str) -> Callable[[], Call]:
        def build() -> Call:
            start = time.perf_counter()
            call = CALLS[name](data, inputs)
            call()
            result.facts[f"{name} first s"] = round(time.perf_counter() - start, 2)
            return call

        return build

    measure(result, {name: make(name) for name in CALLS if name == OWN or name in peers}, rounds, seconds)
    result.facts["difference"] = f"{result.errors[OWN]:.1e}" if OWN in result.errors else "-"
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the files and print the table."""
    options = parse(argv, (__doc__ or "").partition("\n")[0], list(CASES), PEERS)
    if torch_on_one_thread() is None or find_library("onnxscript") is None:
        print(f"torch and onnxscript write the files: {group_command('bench')}", file=sys.stderr)
        return 2
    results: list[Any] = []
    for name in options.cases:
        tell(name)
        results.append(measure_file(CASES[name], options.peers, options.rounds, options.seconds))
    report(options, results, ["KiB", "difference", *[f"{name} first s" for name in (OWN, *options.peers)]])
    return 0


if __name__ == "__main__":
    restart_on_one_thread("benchmarks.onnx_files")
    sys.exit(main())
