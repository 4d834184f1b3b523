"""Long reductions, in parts and by columns."""
