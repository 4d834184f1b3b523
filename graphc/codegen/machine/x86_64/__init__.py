"""Processors with x86-64: with SSE2, AVX2 or AVX-512."""
