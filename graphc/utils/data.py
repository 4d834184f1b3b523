"""PyTorch's import path for datasets, samplers and loaders."""

from graphc import data
from graphc.base.lazy import known_as
from graphc.data import *  # noqa: F403

__all__ = data.__all__  # pyright: ignore[reportUnsupportedDunderAll]

for _file in ("dataloader", "dataset", "distributed", "sampler"):
    known_as(f"{__name__}.{_file}", "graphc.data")
