"""The import path of PyTorch for checkpoints."""

from graphc.control.checkpoint import checkpoint, checkpoint_sequential

__all__ = ["checkpoint", "checkpoint_sequential"]
