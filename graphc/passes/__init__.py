"""Floor 3: transformations of graphs, and the way from a graph to kernels."""
