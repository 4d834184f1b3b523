"""CUDA C: scheduled programs of kernels with threads as text, and its compilation."""
