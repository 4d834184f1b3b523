"""Pictures of graphs as SVG, and one page per model with its graph after every pass and the times of its kernels."""

from graphc.pages.show import notebook, picture

__all__ = ["notebook", "picture"]
