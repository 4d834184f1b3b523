"""The generated page of PyTorch's names."""

from __future__ import annotations

import pytest

from tools.pages import torch_names

pytest.importorskip("torch")


def test_the_page_is_up_to_date():
    stored = (torch_names.ROOT / torch_names.PAGE).read_text(encoding="utf-8")
    assert stored == torch_names.build_page(), "run: python -m tools.pages.torch_names --write"


@pytest.mark.parametrize("space", torch_names.SPACES)
def test_each_name_that_is_missing_has_a_reason(space):
    assert not [name for name in torch_names.missing(space) if not torch_names.reason(space, name)]


def test_reasons_are_looked_up_in_order():
    assert torch_names.reason("torch", "sparse_coo_tensor") == "tensors are dense"
    assert torch_names.reason("torch", "no_such_name") == ""


def test_names_are_listed():
    assert {"conv2d", "add", "Tensor"} <= set(torch_names.names_of("torch"))
    assert "add_" in torch_names.names_of("torch.Tensor") and "nn" not in torch_names.names_of("torch")
