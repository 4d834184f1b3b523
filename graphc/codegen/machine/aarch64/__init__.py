"""Processors with 64-bit Arm: with NEON."""
