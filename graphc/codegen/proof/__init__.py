"""Proofs about machine code: the functions that it reaches, its stack, and the most instructions that it runs."""
