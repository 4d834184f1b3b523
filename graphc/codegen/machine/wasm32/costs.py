"""Costs on WebAssembly."""

from __future__ import annotations

from graphc.codegen.machine.costs import DEFAULT

SIMD128 = DEFAULT
"""Not measured: as with SSE2, to which engines on x86-64 compile these vectors."""
