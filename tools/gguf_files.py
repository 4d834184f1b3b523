"""Small GGUF files for tests and tools: a writer, and a random decoder with every block format."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from graphc.llm.blocks import FORMATS

ALIGNMENT = 32
_NUMBERS = {bool: (7, "?"), int: (4, "I"), float: (6, "f")}
_ARRAYS = {np.dtype(np.int32): 5, np.dtype(np.float32): 6}
SMALL = {"width": 256, "hidden": 256, "heads": 4, "shared": 2, "layers": 2, "vocabulary": 300, "context": 128}
"""Sizes of the random decoder."""
TEMPLATE = "{% for m in messages %}<|1|>{{ m.role }}: {{ m.content }}<|0|>{% endfor %}"
TEMPLATE += "{% if add_generation_prompt %}<|1|>assistant: {% endif %}"
"""Chat template of the random decoder."""


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value: Any) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    if isinstance(value, list):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_text, value))
    if isinstance(value, np.ndarray):
        return struct.pack("<IIQ", 9, _ARRAYS[value.dtype], len(value)) + value.tobytes()
    number, code = _NUMBERS[type(value)]
    return struct.pack(f"<I{code}", number, value)


def gguf_bytes(metadata: Mapping[str, Any], tensors: Mapping[str, tuple[str, np.ndarray]]) -> bytes:
    """Return a GGUF file, version 3, of metadata and of tensors as format and blocks."""
    numbers = {kind.name: number for number, kind in FORMATS.items()}
    parts = [b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))]
    parts += [_text(key) + _value(value) for key, value in metadata.items()]
    offset, data = 0, []
    for name, (kind, blocks) in tensors.items():
        size = FORMATS[numbers[kind]].size
        sizes = (blocks.shape[-1] * size, *reversed(blocks.shape[:-1]))
        parts.append(_text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, numbers[kind], offset))
        content = blocks.tobytes()
        data.append(content + bytes(-len(content) % ALIGNMENT))
        offset += len(data[-1])
    header = b"".join(parts)
    return header + bytes(-len(header) % ALIGNMENT) + b"".join(data)


def random_blocks(kind: str, *shape: int, seed: int = 0) -> np.ndarray:
    """Return blocks of a matrix with random codes; scales, and floats, are of the size of trained weights."""
    format = next(f for f in FORMATS.values() if f.name == kind)
    random = np.random.default_rng(seed)
    blocks = (*shape[:-1], shape[-1] // format.size)
    if format.unpack is None:
        floats = random.standard_normal(shape).astype(np.float32) / 16
        return (floats.view(np.uint32) >> 16).astype(np.uint16) if kind == "BF16" else floats.astype(format.fields)
    data = np.frombuffer(random.bytes(prod(blocks) * format.bytes), format.fields).reshape(blocks).copy()
    for name in ("d", "m", "dmin"):
        if name in (format.fields.names or ()):
            data[name] = random.standard_normal(blocks) / (4096 if "K" in kind else 256)
    return data


def random_decoder(kinds: tuple[str, ...] = ("Q4_0", "Q4_1", "Q8_0")) -> bytes:
    """Return a Llama-like decoder whose matrices have the formats of ``kinds`` in turn, with a vocabulary of bytes."""
    s = SMALL
    inner, shared = s["width"], s["width"] // s["heads"] * s["shared"]
    shapes = {"token_embd": (s["vocabulary"], s["width"])}
    for i in range(s["layers"]):
        shapes |= {
            f"blk.{i}.attn_{n}": (size, s["width"]) for n, size in zip("qkv", (inner, shared, shared), strict=True)
        }
        shapes |= {f"blk.{i}.attn_output": (s["width"], inner), f"blk.{i}.ffn_down": (s["width"], s["hidden"])}
        shapes |= {f"blk.{i}.ffn_{n}": (s["hidden"], s["width"]) for n in ("gate", "up")}
    tensors = {}
    for n, (name, shape) in enumerate(shapes.items()):
        kind = kinds[n % len(kinds)]
        tensors[f"{name}.weight"] = (kind, random_blocks(kind, *shape, seed=n))
    norms = ["output_norm", *(f"blk.{i}.{n}_norm" for i in range(s["layers"]) for n in ("attn", "ffn"))]
    tensors |= {f"{n}.weight": ("F32", np.ones(s["width"], np.float32)) for n in norms}
    return gguf_bytes(_metadata(), tensors)


def _metadata() -> dict[str, Any]:
    s = SMALL
    return {
        "general.architecture": "llama",
        "llama.block_count": s["layers"],
        "llama.context_length": s["context"],
        "llama.embedding_length": s["width"],
        "llama.feed_forward_length": s["hidden"],
        "llama.attention.head_count": s["heads"],
        "llama.attention.head_count_kv": s["shared"],
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.freq_base": 10000.0,
        "tokenizer.chat_template": TEMPLATE,
        "tokenizer.ggml.eos_token_id": 256,
        **vocabulary(),
    }


def vocabulary() -> dict[str, Any]:
    """Return the metadata of a byte-level vocabulary: bytes without merges, and control tokens."""
    # Byte-level BPE writes printable bytes as themselves and the others from U+0100 on.
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    control = SMALL["vocabulary"] - 256
    tokens = [chr(b) if b in printable else chr(256 + others.index(b)) for b in range(256)]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens + [f"<|{i}|>" for i in range(control)],
        "tokenizer.ggml.merges": [],
        "tokenizer.ggml.token_type": np.array([1] * 256 + [3] * control, np.int32),
    }


def write_random_decoder(path: Path, kinds: tuple[str, ...] = ("Q4_0", "Q4_1", "Q8_0")) -> Path:
    path.write_bytes(random_decoder(kinds))
    return path
