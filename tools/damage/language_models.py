"""Damage small GGUF and safetensors models, and load them: ``python -m tools.damage.language_models --count 2000``.

A damaged file must load, or raise an error of graphc; no read may cross its end, and no header may claim memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import struct
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import graphc as gc
from graphc.errors import GraphcError
from tools.gguf_files import random_decoder

EXTREMES = (0, 1, 0x7F, 0xFF, 0xFFFF, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)
"""Numbers that sizes and counts are replaced by."""
MEMORY_LIMIT = 1 << 28
"""Bytes that loading a damaged file may take beyond those before it; the models have less than a million."""
CONFIG = {
    "model_type": "llama",
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    "layer_types": ["full_attention", "sliding_attention"],
    "sliding_window": 9,
}


def damaged(data: bytes, header: int, random: np.random.Generator) -> bytes:
    """Return a copy with one to four faults in its first ``header`` bytes, or cut off."""
    copy = bytearray(data)
    for _ in range(random.integers(1, 5)):
        kind, position = random.integers(5), int(random.integers(header))
        if kind == 0:
            copy[position] ^= 1 << int(random.integers(8))
        elif kind == 1:
            copy[position] = int(random.integers(256))
        elif kind == 2:
            number = EXTREMES[random.integers(len(EXTREMES))]
            copy[position : position + 8] = struct.pack("<Q", number)
        elif kind == 3:
            copy[position : position + int(random.integers(1, 16))] = b""
        else:
            copy = copy[: int(random.integers(len(copy) if random.integers(2) else header)) + 1]
        header = min(header, len(copy))
    return bytes(copy)


def damaged_config(values: dict[str, Any], random: np.random.Generator) -> dict[str, Any]:
    """Return a configuration in which a field is missing or has a wrong value."""
    wrong: list[Any] = [None, -1, 0, 3, 1 << 40, 1.5, "text", [], {}, True]
    key = sorted(values)[random.integers(len(values))]
    if isinstance(values[key], dict) and random.integers(2):
        return {**values, key: damaged_config(values[key], random)}
    copy = {**values, key: wrong[random.integers(len(wrong))]}
    if random.integers(4) == 0:
        del copy[key]
    return copy


def make_folder(folder: Path) -> Path:
    """Write a small random decoder as ``config.json`` and a safetensors file."""
    folder.mkdir(parents=True, exist_ok=True)
    gc.manual_seed(0)
    gc.save_state(gc.llm.Decoder(gc.llm.decoder_config(CONFIG)).state_dict(), folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


def outcome(path: Path) -> str:
    """Load a model, and return ``loaded`` or the class of graphc's error. Other exceptions, and memory beyond
    MEMORY_LIMIT, raise."""
    before = _memory()
    try:
        gc.llm.load(path, places=1)
        result = "loaded"
    except GraphcError as error:
        result = type(error).__name__
    if _memory() - before > MEMORY_LIMIT:
        raise AssertionError(f"loading took {_memory() - before} bytes")
    return result


def _memory() -> int:
    """Return the largest memory that this process has used, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def sweep(count: int, seed: int, folder: Path) -> Counter[str]:
    """Load ``count`` damaged models: three quarters GGUF files, the others folders. Return the outcomes."""
    random, outcomes = np.random.default_rng(seed), Counter[str]()
    whole = random_decoder()
    header = whole.index(b"blk.1.ffn_norm.weight") + 64
    model = make_folder(folder / "model")
    weights = (model / "model.safetensors").read_bytes()
    length = 8 + int.from_bytes(weights[:8], "little")
    for number in range(count):
        if number % 4:
            path = folder / "damaged.gguf"
            path.write_bytes(damaged(whole, header, random))
        else:
            path = model
            broken = damaged_config(CONFIG, random) if number % 8 else CONFIG
            (model / "config.json").write_text(json.dumps(broken))
            (model / "model.safetensors").write_bytes(weights if number % 8 else damaged(weights, length, random))
        try:
            outcomes[outcome(path)] += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}, file {number}: {type(error).__name__}: {error}") from error
    return outcomes


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools.damage.language_models", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="number of files (default: 2000)")
    parser.add_argument("--seed", type=int, default=0, help="of the random faults (default: 0)")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        outcomes = sweep(options.count, options.seed, Path(folder))
    print(", ".join(f"{count} {name}" for name, count in outcomes.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
