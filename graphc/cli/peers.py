"""Peers of ``graphc bench --compare``: ONNX Runtime, OpenVINO, PyTorch, other model files, figures of earlier runs."""

from __future__ import annotations

import importlib
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import metadata
from math import inf
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from graphc.base.difference import Difference, combined, difference
from graphc.base.errors import ArtifactError
from graphc.calls.graph_module import GraphModule
from graphc.cli import exported, sources, targets
from graphc.cli.console import UsageError
from graphc.models.model_export import export
from graphc.runtime.threads import get_num_threads
from graphc.tensors.creation import from_numpy

LIBRARIES = ("onnxruntime", "openvino", "torch")


class Peer(NamedTuple):
    """Runner that takes turns with the model."""

    name: str
    version: str
    callers: tuple[Callable[[], Any], ...]
    """One call for each concurrent caller."""
    outputs: Callable[[], list[np.ndarray]]
    """Outputs of a call, for comparison."""


class Case(NamedTuple):
    """The call that every peer repeats."""

    path: str
    """Path of the model."""
    options: Any
    inputs: tuple[Any, ...]
    streams: int


def open_peer(name: str, case: Case) -> Peer:
    """Open the peer that ``--compare`` names. Raises UsageError if it is not installed or cannot run the model."""
    if name in LIBRARIES:
        return _LIBRARIES[name](case)
    if not Path(name).is_file():
        raise UsageError(
            f"--compare {name!r} is neither a known runner nor a file",
            remedy=f"choose one of {', '.join(LIBRARIES)}, a model file, or a .json file of bench --json",
        )
    options = case.options
    with targets.compiling():
        model = exported.load_model(name, False, options.machine, options.device)
    return Peer(name, "", (partial(model, *case.inputs),) * case.streams, partial(model.run, list(case.inputs)))


def stored_figures(path: str, sizes: Mapping[str, int]) -> Mapping[str, float]:
    """Read the figures of a call from the output of ``graphc bench --json`` in a file.

    Raises ArtifactError if it has none for these sizes of named dimensions.
    """
    try:
        facts = json.loads(Path(path).read_text(encoding="utf-8"))
        calls = facts.get("calls", [{"sizes": {}, "call": facts.get("call")}])
        figures = next(entry["call"] for entry in calls if not sizes or entry["sizes"] == dict(sizes))
        return {name: float(figures[name]) for name in ("p50", "p90", "p99", "throughput")}
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration):
        condition = f" for {dict(sizes)}" if sizes else ""
        raise ArtifactError(
            f"{path} holds no figures{condition}", remedy="write the file with graphc bench --json"
        ) from None


def _library(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise UsageError(
            f"--compare {name}: the package is not installed", remedy=f"install it: pip install {name}"
        ) from None


def _onnx(case: Case, folder: str) -> Path:
    """Return the model as an ONNX file: the model itself, or an export of its graph for the sizes of the call."""
    if Path(case.path).suffix == ".onnx":
        return Path(case.path)
    source = sources.open_source(sources.file_options(case.path, case.options.entry))
    assert source.graph is not None
    module = GraphModule(source.graph, {path: from_numpy(np.array(a)) for path, a in source.weights.items()})
    examples = [x if isinstance(x, int) else from_numpy(np.asarray(x)) for x in case.inputs]
    model_path = Path(folder) / "model.onnx"
    with targets.compiling():
        export(module.eval(), *examples, path=str(model_path))
    return model_path


def _onnxruntime(case: Case) -> Peer:
    package: Any = _library("onnxruntime")
    options = package.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = get_num_threads(), 1
    options.log_severity_level = 3
    with tempfile.TemporaryDirectory(prefix="graphc-") as folder:
        session = package.InferenceSession(str(_onnx(case, folder)), options, providers=["CPUExecutionProvider"])
    feeds = {spec.name: np.asarray(x) for spec, x in zip(session.get_inputs(), case.inputs, strict=True)}
    run = partial(session.run, None, feeds)
    return Peer("onnxruntime", package.__version__, (run,) * case.streams, run)


def _openvino(case: Case) -> Peer:
    package: Any = _library("openvino")
    core = package.Core()
    # NOTE: by default OpenVINO computes in bf16 on processors that have it.
    limits = {
        "INFERENCE_NUM_THREADS": get_num_threads() * case.streams,
        "NUM_STREAMS": case.streams,
        "INFERENCE_PRECISION_HINT": "f32",
    }
    with tempfile.TemporaryDirectory(prefix="graphc-") as folder:
        compiled = core.compile_model(core.read_model(str(_onnx(case, folder))), "CPU", limits)
    arrays = dict(enumerate(np.asarray(x) for x in case.inputs))
    requests = [compiled.create_infer_request() for _ in range(case.streams)]
    callers = tuple(partial(r.infer, arrays, share_inputs=True, share_outputs=True) for r in requests)
    return Peer("openvino", metadata.version("openvino"), callers, lambda: [np.array(x) for x in callers[0]().values()])


def _torch(case: Case) -> Peer:
    if Path(case.path).suffix != ".pt2":
        raise UsageError(
            f"--compare torch runs .pt2 files, and {case.path!r} is not one",
            remedy="compare a .pt2 file, or use --compare onnxruntime",
        )
    package: Any = _library("torch")
    package.set_num_threads(get_num_threads())
    module = package.export.load(case.path).module()
    tensors = [x if isinstance(x, int) else package.from_numpy(np.array(x)) for x in case.inputs]

    def run() -> Any:
        with package.inference_mode():
            return module(*tensors)

    def outputs() -> list[np.ndarray]:
        leaves, _ = package.utils._pytree.tree_flatten(run())
        return [x.numpy() for x in leaves]

    return Peer("torch", package.__version__, (run,) * case.streams, outputs)


_LIBRARIES: dict[str, Callable[[Case], Peer]] = {
    "onnxruntime": _onnxruntime,
    "openvino": _openvino,
    "torch": _torch,
}


def output_difference(actual: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> Difference:
    """Return the difference of all outputs from those of a peer, as one; outputs are named by their index."""
    if len(actual) != len(others):
        return Difference(
            "outputs", problem=f"{len(actual)} instead of {len(others)}", absolute=inf, relative=inf, ratio=inf
        )
    pairs = zip(actual, others, strict=True)
    return combined(difference(str(i), np.asarray(a), np.asarray(b)) for i, (a, b) in enumerate(pairs))
