"""PyTorch's import path for helpers of tests."""

from graphc.tensors.closeness import assert_close

__all__ = ["assert_close"]
