"""PyTorch's import paths ``torch.utils.*``, which re-export names of other packages."""

from graphc.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
