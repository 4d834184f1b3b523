"""Objects of other frameworks are told by their classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphc.base.foreign import is_foreign_tensor, no_foreign_module
from graphc.errors import ArgumentError


class Other:
    """A tensor of some library."""

    def __dlpack__(self, **_: Any) -> Any:
        return np.ones(2).__dlpack__()

    def __dlpack_device__(self) -> Any:
        return 1, 0


def test_a_tensor_is_what_can_be_handed_over():
    assert is_foreign_tensor(Other()) and not is_foreign_tensor(1.0) and not is_foreign_tensor(np.float32(1))


def test_a_model_of_pytorch_is_told_without_pytorch():
    kind = type("Module", (), {"__module__": "torch.nn.modules.module"})
    with pytest.raises(ArgumentError, match="compile: Net is a model of PyTorch") as error:
        no_foreign_module("compile", type("Net", (kind,), {})())
    assert "graphc.from_torch" in str(error.value)
    no_foreign_module("compile", type("Module", (), {"__module__": "mine"})())
