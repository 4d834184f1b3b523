"""Costs on 32-bit RISC-V."""

from __future__ import annotations

from dataclasses import replace

from graphc.codegen.machine.costs import DEFAULT

SCALAR = replace(DEFAULT, rewrites=replace(DEFAULT.rewrites, byte_pairs=True))
"""No instruction multiplies parts of words. Each byte of a quad takes three instructions to be separated, each half of
a pair two: the digit net of ``benchmarks.microcontroller`` takes 5.2 million instructions by pairs and 6.1 by quads
without floating point, 2.0 and 2.9 with it. All else is not measured."""

SOFT = replace(SCALAR, contraction=replace(SCALAR.contraction, multiply_adds=0.25))
"""Without floating point each operation is a call, and the next one waits for its end: one sum keeps the processor
busy. With eight in turn the digit net takes 30.2 million instructions in place of 28.8 (QEMU). The number is the
inverse of the latency, no measured speed."""
