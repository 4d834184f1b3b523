"""Operators of PyTorch's core set without a rule, and the reason for each."""

from __future__ import annotations

_MEMORY = "reads or changes the memory layout of a tensor, which values do not have; PyTorch computes it"

MISSING: dict[str, str] = {
    "aten._local_scalar_dense.default": "returns an element as a Python number: a trace has no values",
    "aten.resize_.default": _MEMORY,
    "aten.sym_is_contiguous.default": _MEMORY,
}
"""Reasons by name with overload. An operator neither here nor in the table is an oversight, and a test fails."""
