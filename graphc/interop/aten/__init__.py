"""Graphs of ATen operators, PyTorch's own set, run by graphc; no torch is imported here."""
