"""Graphs of ATen operators, PyTorch's own set, run by graphc. Does not import torch."""
