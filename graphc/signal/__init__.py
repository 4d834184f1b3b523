"""Signals, as ``torch.signal`` names it: windows."""

from graphc.signal import windows

__all__ = ["windows"]
