"""Proofs about machine code: reached functions, stack, and maximum number of instructions."""
