"""Pooling functions named ``..._with_indices``, which also return the positions of the maxima."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from graphc.nn.functional.pooling import adaptive_max_pool1d, adaptive_max_pool2d, max_pool1d, max_pool2d
from graphc.nn.functional.unpooling import fractional_max_pool2d, fractional_max_pool3d
from graphc.nn.functional.volume import adaptive_max_pool3d, max_pool3d

__all__ = ["adaptive_max_pool1d_with_indices", "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d_with_indices"]
__all__ += ["fractional_max_pool2d_with_indices", "fractional_max_pool3d_with_indices", "max_pool1d_with_indices"]
__all__ += ["max_pool2d_with_indices", "max_pool3d_with_indices"]


def _indexed(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **{**kwargs, "return_indices": True})

    call.__name__ = call.__qualname__ = f"{function.__name__}_with_indices"
    call.__doc__ = f"Call ``{function.__name__}`` with ``return_indices``: return (values, positions)."
    return call


adaptive_max_pool1d_with_indices = _indexed(adaptive_max_pool1d)
adaptive_max_pool2d_with_indices = _indexed(adaptive_max_pool2d)
adaptive_max_pool3d_with_indices = _indexed(adaptive_max_pool3d)
fractional_max_pool2d_with_indices = _indexed(fractional_max_pool2d)
fractional_max_pool3d_with_indices = _indexed(fractional_max_pool3d)
max_pool1d_with_indices = _indexed(max_pool1d)
max_pool2d_with_indices = _indexed(max_pool2d)
max_pool3d_with_indices = _indexed(max_pool3d)
