"""Sums of products: matching, tiling into register blocks, packing of operands."""
