"""Arithmetic that a processor lacks, as LLVM text: floats in integers, and quotients of 64 bits."""
