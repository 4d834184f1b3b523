"""Weights of a file under the names of ``Decoder``: renamed, split, and with rows in the order of ``transformers``."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from graphc.base.dtypes import bfloat16, bits_of
from graphc.base.errors import ArtifactError
from graphc.llm.blocks import BF16, F16, F32, dequantize
from graphc.llm.config import DIVISORS, DecoderConfig
from graphc.llm.gguf_file import GgufTensor

Weights = dict[str, GgufTensor]
"""Blocks by name; weights of safetensors files are blocks of one float."""

_PREFIXES = ("language_model.model.", "model.language_model.", "model.", "language_model.")
_FUSED = {"self_attn.qkv_proj": ("q_proj", "k_proj", "v_proj"), "mlp.gate_up_proj": ("gate_proj", "up_proj")}
"""Projections that are stored as one, with their parts in the order of the rows."""
_IGNORED = ("rotary_emb.inv_freq", *DIVISORS)
_TOP = {"token_embd": "embed_tokens", "output_norm": "norm", "output": "lm_head"}
_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_qkv": "self_attn.qkv_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "post_ffw_norm": "post_feedforward_layernorm",
}
"""Names in GGUF files to those of ``transformers`` (docs/gguf.md of ggml)."""
_AFTER = {"ffn_norm": "pre_feedforward_layernorm"}
"""Names in families with norms after attention and perceptron."""
_FLOATS = {np.dtype(np.float32): F32, np.dtype(np.float16): F16, np.dtype(bfloat16.numpy): BF16}
INTERLEAVED = ("llama", "smollm3", "granite")
"""Families whose GGUF files have rotated pairs next to each other, not half a head apart."""


def from_transformers(source: str, arrays: Mapping[str, np.ndarray], family: str) -> Weights:
    """Return the weights of safetensors files. Norms of Gemma multiply by 1 plus the stored weight."""
    weights = {}
    for name, array in arrays.items():
        kind = _FLOATS.get(array.dtype)
        if kind is None:
            raise ArtifactError(f"{source}: {name!r} has elements {array.dtype}", remedy="store f32, f16 or bf16")
        short = name[len(next((p for p in _PREFIXES if name.startswith(p)), "")) :]
        stored = bits_of(array) if kind is BF16 else array
        tensor = GgufTensor(kind, stored)
        if family.startswith("gemma") and short.endswith("norm.weight"):
            tensor = GgufTensor(F32, dequantize(*tensor) + np.float32(1))
        weights[short] = tensor
    return weights


def from_gguf(tensors: Mapping[str, GgufTensor]) -> Weights:
    """Return the weights of a GGUF file by the names of ``transformers``; unknown names stay."""
    after = any(name.endswith(".post_ffw_norm.weight") for name in tensors)
    layer = {**_LAYER, **(_AFTER if after else {})}
    weights = {}
    for name, tensor in tensors.items():
        base, _, kind = name.rpartition(".")
        match = re.fullmatch(r"blk\.(\d+)\.(\w+)", base)
        short = _TOP.get(base) if match is None else layer.get(match[2])
        place = "" if match is None else f"layers.{match[1]}."
        new = name if short is None else f"{place}{short}.{kind}"
        if match is not None and match[2] == "ffn_up" and f"blk.{match[1]}.ffn_gate.{kind}" not in tensors:
            new = f"{place}mlp.gate_up_proj.{kind}"
        weights[new] = tensor
    return weights


def split_fused(weights: Weights, heads: int, shared: int) -> Weights:
    """Return weights in which each projection is one; fused rows are those of ``heads`` query and twice ``shared``
    heads, or two halves."""
    result: Weights = {}
    for name, tensor in weights.items():
        fused = next((f for f in _FUSED if f".{f}." in name), None)
        if fused is None:
            if not name.endswith(_IGNORED):
                result[name] = tensor
            continue
        parts, rows = _FUSED[fused], len(tensor.blocks)
        shares = (heads, shared, shared) if len(parts) == 3 else (1, 1)
        if rows % sum(shares):
            raise ArtifactError(f"{name!r} has {rows} rows, which are not {' + '.join(map(str, shares))} parts")
        start = 0
        for part, share in zip(parts, shares, strict=True):
            end = start + rows // sum(shares) * share
            result[name.replace(fused, f"{fused.partition('.')[0]}.{part}")] = GgufTensor(
                tensor.format, tensor.blocks[start:end]
            )
            start = end
    return result


def half_apart(weights: Weights, config: DecoderConfig) -> Weights:
    """Return weights whose rotated pairs are half a head apart instead of next to each other: rows of queries and keys
    move, whole blocks with them."""
    result = dict(weights)
    for name, tensor in weights.items():
        match = re.fullmatch(r"layers\.\d+\.self_attn\.([qk])_proj\.(weight|bias)", name)
        if match is not None:
            heads = config.heads if match[1] == "q" else config.shared_heads
            result[name] = GgufTensor(tensor.format, _reordered(name, tensor.blocks, heads))
    return result


def _reordered(name: str, rows: np.ndarray, heads: int) -> np.ndarray:
    flat = rows.reshape(-1) if rows.ndim == 1 else rows
    if len(flat) % (2 * heads):
        raise ArtifactError(f"{name!r} has {len(flat)} rows, which are not pairs of {heads} heads")
    pairs = flat.reshape(heads, -1, 2, *flat.shape[1:])
    return pairs.swapaxes(1, 2).reshape(flat.shape)
