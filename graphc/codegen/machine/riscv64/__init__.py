"""Processors with 64-bit RISC-V: with compressed instructions and f64, with or without vectors."""
