"""Sums of products: recognised, cut into register blocks, their operands packed."""
