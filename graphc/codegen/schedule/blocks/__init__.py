"""Kernels that hand each other large temporaries, block by block."""
