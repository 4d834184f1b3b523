"""The import path of PyTorch for what tests of programs use."""

from graphc.tensors.closeness import assert_close

__all__ = ["assert_close"]
