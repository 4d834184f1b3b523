"""Signal processing under the names of ``torch.signal``: windows."""

from graphc.signal import windows

__all__ = ["windows"]
