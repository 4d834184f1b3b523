"""Operators of PyTorch's core set that have no rule, and why."""

from __future__ import annotations

_MEMORY = "asks how memory lies or changes that of a tensor in place, which no value says; PyTorch computes it"

MISSING: dict[str, str] = {
    "aten._local_scalar_dense.default": "a Python number made of an element: a program has no values while it is made",
    "aten.resize_.default": _MEMORY,
    "aten.sym_is_contiguous.default": _MEMORY,
}
"""By name with overload. What stands neither here nor in the table is an oversight, and a test fails."""
