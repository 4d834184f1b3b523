"""Block formats of GGUF tensors: fields of a block, and the codes, scales and offsets that they hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from graphc.base.dtypes import bfloat16, widen
from graphc.base.records import dataclass


class Codes(NamedTuple):
    """Integers in groups of neighbours: an element is ``codes * scales + offsets`` of its group, in f32."""

    codes: np.ndarray
    """i8[blocks, elements]"""
    scales: np.ndarray
    """f32[blocks, groups]"""
    offsets: np.ndarray | None
    """f32[blocks, groups]; None for zeros."""


@dataclass(frozen=True)
class BlockFormat:
    """Element type of a GGUF tensor, stored in blocks of neighbours along the last dimension."""

    name: str
    size: int
    """Elements of a block."""
    fields: np.dtype
    """Layout of a block."""
    unpack: Callable[[np.ndarray], Codes] | None = None
    """Split blocks, [blocks] of ``fields``; None for the types of floats."""
    bits: int = 8
    """Bits of a code: 4 if codes are from -8 to 7."""

    @property
    def bytes(self) -> int:
        """Return the size of a block in bytes."""
        return self.fields.itemsize


def _low_high(packed: np.ndarray) -> np.ndarray:
    """Return u8[blocks, 2 * n]: the lower four bits of each of n bytes, then the upper ones."""
    return np.concatenate((packed & 15, packed >> 4), axis=1)


def _column(field: np.ndarray) -> np.ndarray:
    return field.astype(np.float32)[:, None]


def _fifth_bits(blocks: np.ndarray) -> np.ndarray:
    """Return u8[blocks, 32] codes of five bits; bit ``i`` of ``qh`` is the highest of element ``i``."""
    high = blocks["qh"][:, None] >> np.arange(32, dtype=np.uint32) & 1
    return _low_high(blocks["qs"]) | (high.astype(np.uint8) << 4)


def _centered(codes: np.ndarray, zero: int) -> np.ndarray:
    return codes.view(np.int8) - np.int8(zero)


def _with_minimum(codes: np.ndarray, scales: np.ndarray, minimum: np.ndarray, zero: int) -> Codes:
    """Return ``codes * scales + minimum`` with ``zero`` subtracted from the codes."""
    return Codes(_centered(codes, zero), scales, minimum + np.float32(zero) * scales)


def _q4_0(blocks: np.ndarray) -> Codes:
    return Codes(_centered(_low_high(blocks["qs"]), 8), _column(blocks["d"]), None)


def _q4_1(blocks: np.ndarray) -> Codes:
    return _with_minimum(_low_high(blocks["qs"]), _column(blocks["d"]), _column(blocks["m"]), 8)


def _q5_0(blocks: np.ndarray) -> Codes:
    return Codes(_centered(_fifth_bits(blocks), 16), _column(blocks["d"]), None)


def _q5_1(blocks: np.ndarray) -> Codes:
    return _with_minimum(_fifth_bits(blocks), _column(blocks["d"]), _column(blocks["m"]), 0)


def _q8_0(blocks: np.ndarray) -> Codes:
    return Codes(blocks["qs"], _column(blocks["d"]), None)


def _k_scales(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return scales and minima f32[blocks, 8], stored as 6-bit multiples of ``d`` and of ``dmin``.

    The first four have six bits of bytes 0 to 3 (scales) and 4 to 7 (minima); the last four have the nibbles of bytes 8
    to 11, and above them the two upper bits of bytes 0 to 3 and 4 to 7.
    """
    first, second, last = (blocks["scales"][:, i : i + 4] for i in (0, 4, 8))
    scales = np.concatenate((first & 63, (last & 15) | (first >> 2 & 48)), axis=1)
    minima = np.concatenate((second & 63, (last >> 4) | (second >> 2 & 48)), axis=1)
    return _column(blocks["d"]) * scales.astype(np.float32), _column(blocks["dmin"]) * minima.astype(np.float32)


def _k_nibbles(blocks: np.ndarray) -> np.ndarray:
    """Return u8[blocks, 8, 32]: bytes are in four runs of 32, each with two groups."""
    runs = blocks["qs"].reshape(-1, 4, 1, 32)
    return np.concatenate((runs & 15, runs >> 4), axis=2).reshape(-1, 8, 32)


def _q4_k(blocks: np.ndarray) -> Codes:
    scales, minima = _k_scales(blocks)
    return _with_minimum(_k_nibbles(blocks).reshape(-1, 256), scales, -minima, 8)


def _q5_k(blocks: np.ndarray) -> Codes:
    scales, minima = _k_scales(blocks)
    high = blocks["qh"][:, None] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    return _with_minimum((_k_nibbles(blocks) | high << 4).reshape(-1, 256), scales, -minima, 0)


def _q6_k(blocks: np.ndarray) -> Codes:
    halves = blocks["ql"].reshape(-1, 2, 1, 64)
    low = np.concatenate((halves & 15, halves >> 4), axis=2).reshape(-1, 8, 32)
    high = blocks["qh"].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3
    codes = (low | high.reshape(-1, 8, 32) << 4).reshape(-1, 256)
    return Codes(_centered(codes, 32), _column(blocks["d"]) * blocks["scales"].astype(np.float32), None)


_D, _M, _MIN = ("d", "<f2"), ("m", "<f2"), ("dmin", "<f2")
_NIBBLES, _FIFTH, _SCALES = ("qs", "u1", 16), ("qh", "<u4"), ("scales", "u1", 12)

F32 = BlockFormat("F32", 1, np.dtype("<f4"))
F16 = BlockFormat("F16", 1, np.dtype("<f2"))
BF16 = BlockFormat("BF16", 1, np.dtype("<u2"))
FORMATS = {
    0: F32,
    1: F16,
    2: BlockFormat("Q4_0", 32, np.dtype([_D, _NIBBLES]), _q4_0, 4),
    3: BlockFormat("Q4_1", 32, np.dtype([_D, _M, _NIBBLES]), _q4_1, 4),
    6: BlockFormat("Q5_0", 32, np.dtype([_D, _FIFTH, _NIBBLES]), _q5_0),
    7: BlockFormat("Q5_1", 32, np.dtype([_D, _M, _FIFTH, _NIBBLES]), _q5_1),
    8: BlockFormat("Q8_0", 32, np.dtype([_D, ("qs", "i1", 32)]), _q8_0),
    12: BlockFormat("Q4_K", 256, np.dtype([_D, _MIN, _SCALES, ("qs", "u1", 128)]), _q4_k, 4),
    13: BlockFormat("Q5_K", 256, np.dtype([_D, _MIN, _SCALES, ("qh", "u1", 32), ("qs", "u1", 128)]), _q5_k),
    14: BlockFormat("Q6_K", 256, np.dtype([("ql", "u1", 128), ("qh", "u1", 64), ("scales", "i1", 16), _D]), _q6_k),
    30: BF16,
}
"""Formats by their numbers in GGUF files (ggml.h, ``enum ggml_type``); fields as in ggml-common.h."""


def unpack(kind: BlockFormat, blocks: np.ndarray) -> Codes:
    """Return codes i8[..., K] with scales and offsets f32[..., groups] of blocks [..., K / size]."""
    assert kind.unpack is not None
    with np.errstate(invalid="ignore", over="ignore"):  # NOTE: damaged scales may be infinite.
        codes, scales, offsets = kind.unpack(blocks.reshape(-1))
    lead = blocks.shape[:-1]
    return Codes(
        codes.reshape(*lead, -1), scales.reshape(*lead, -1), None if offsets is None else offsets.reshape(*lead, -1)
    )


def dequantize(kind: BlockFormat, blocks: np.ndarray) -> np.ndarray:
    """Return the elements f32[..., K] of blocks [..., K / size]."""
    if kind.unpack is None:
        return widen(blocks.view(bfloat16.numpy)) if kind is BF16 else blocks.astype(np.float32)
    codes, scales, offsets = unpack(kind, blocks)
    values = codes.reshape(*scales.shape, -1).astype(np.float32) * scales[..., None]
    return (values if offsets is None else values + offsets[..., None]).reshape(codes.shape)
