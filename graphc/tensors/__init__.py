"""Tensors: data, views, methods, functions, creation, random numbers."""
