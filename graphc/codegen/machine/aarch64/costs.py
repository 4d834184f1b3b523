"""Costs on aarch64."""

from __future__ import annotations

from graphc.codegen.machine.costs import DEFAULT

NEON = DEFAULT
"""Not measured: as on x86-64."""
