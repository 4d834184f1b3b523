"""PyTorch's import path for activation checkpoints."""

from graphc.control.checkpoint import checkpoint, checkpoint_sequential

__all__ = ["checkpoint", "checkpoint_sequential"]
