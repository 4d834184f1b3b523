"""Import paths that users of PyTorch know; what they hand on lies elsewhere."""

from graphc.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
