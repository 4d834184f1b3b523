"""Tile-and-fuse: kernels that hand each other large temporaries, tile by tile."""
