"""The door to models of PyTorch."""

from __future__ import annotations

import re
from typing import Any

import pytest

import graphc
from graphc.base.installation import install_command
from graphc.interop import from_torch


def test_without_pytorch_the_error_says_what_to_install(monkeypatch: Any):
    monkeypatch.setattr(from_torch, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=re.escape(install_command("torch"))) as found:
        from_torch.from_torch(object())
    assert found.value.name == "torch"


def test_what_is_no_model_of_pytorch_is_refused():
    pytest.importorskip("torch")
    with pytest.raises(graphc.errors.ArgumentError, match="not Linear"):
        graphc.from_torch(graphc.nn.Linear(2, 2))
