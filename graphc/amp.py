"""PyTorch's import path for mixed precision: ``autocast`` and ``GradScaler``."""

from graphc.optim.loss_scale import GradScaler
from graphc.tape.autocast import autocast, is_autocast_available

__all__ = ["GradScaler", "autocast", "is_autocast_available"]
