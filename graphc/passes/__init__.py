"""Transformations of graphs, and the way from a graph to kernels."""
