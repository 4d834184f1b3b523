"""Fusion plans: which nodes become one kernel, which values are stored, and the memory layout of images."""
