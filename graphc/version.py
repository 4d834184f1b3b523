"""PyTorch's import path for version information."""

from graphc.base.version import VERSION

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]
__version__ = VERSION
cuda = hip = xpu = git_version = None
"""None: these are not built in. The GPU's driver and compiler are located when a program is compiled for it."""
debug = False
