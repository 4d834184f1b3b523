"""Tile-and-fuse: kernels that pass large temporaries to each other tile by tile."""
