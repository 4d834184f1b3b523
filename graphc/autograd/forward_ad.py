"""PyTorch's import path of forward mode: dual numbers and their levels."""

from graphc.eager.forward_ad import UnpackedDualTensor, dual_level, make_dual, unpack_dual

__all__ = ["UnpackedDualTensor", "dual_level", "make_dual", "unpack_dual"]
