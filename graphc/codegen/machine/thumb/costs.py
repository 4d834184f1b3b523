"""Costs on Cortex-M."""

from __future__ import annotations

from dataclasses import replace

from graphc.codegen.machine.costs import DEFAULT

DSP = replace(DEFAULT, rewrites=replace(DEFAULT.rewrites, byte_pairs=True))
"""SMLAD multiplies pairs. Of quads, two bytes have to be widened first: the digit net of ``benchmarks.microcontroller``
takes 877,000 instructions by pairs and 1,091,000 by quads. All else is not measured."""
