"""Expectations of each precision, for tests of narrow weights."""

from __future__ import annotations

MOST = {
    "bf16": 1e-2,
    "f16": 1e-3,
    "int8": 2e-2,
    "int4": 0.2,
    "bf16_dot": 2e-2,
    "int8_dot": 4e-2,
    "int4_dot": 0.2,
}
"""By precision of the weights: the largest error of a small model, in units of its largest output."""
NARROW = {"int8": "i8", "int4": "i32", "bf16_dot": "bf16x2", "int8_dot": "i32", "int4_dot": "i32"}
"""What the others than f16 and bf16 are stored as."""
