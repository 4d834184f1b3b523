"""The import path of PyTorch for what this version is and was made with."""

from graphc.base.version import VERSION

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]
__version__ = VERSION
cuda = hip = xpu = git_version = None
"""Nothing of these is built in: a GPU's driver and compiler are looked for when a program is made for it."""
debug = False
