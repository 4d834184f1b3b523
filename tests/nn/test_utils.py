"""The import path that users know."""

from __future__ import annotations

from graphc import nn
from graphc.nn import clip_grad


def test_passes_on_the_same_functions():
    for name in nn.utils.__all__:
        assert getattr(nn.utils, name) is getattr(clip_grad, name)
