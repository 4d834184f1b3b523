"""Graphs of ATen operators, PyTorch's own set, run by graphc without importing torch."""
