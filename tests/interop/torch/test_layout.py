"""Memory layouts of PyTorch's tensors."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
layout: Any = pytest.importorskip("graphc.interop.torch.layout")


@pytest.mark.parametrize(
    ("tensor", "order"),
    [
        (torch.zeros(2, 3, 4), (0, 1, 2)),
        (torch.zeros(2, 3, 4).permute(1, 2, 0), (2, 0, 1)),
        (torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last), (0, 2, 3, 1)),
        (torch.zeros(1, 3, 1, 1).to(memory_format=torch.channels_last), (0, 1, 2, 3)),
        (torch.zeros(5, 6)[:, 1:3], (0, 1)),
        (torch.zeros(5, 6)[:, 1:3].t(), (1, 0)),
        (torch.zeros(0, 6).t(), (0, 1)),
        (torch.zeros(()), ()),
    ],
)
def test_the_order_is_that_of_the_strides(tensor: Any, order: tuple[int, ...]):
    found = layout.layout_of(tensor)
    assert found.order == order
    sizes = tuple(tensor.shape)
    assert found.sizes(found.shape(sizes)) == sizes
    dense = torch.empty_strided(sizes, found.strides(sizes))
    assert layout.layout_of(dense) == found and layout.is_dense(dense)
    assert layout.is_dense(tensor) == (0 in sizes or tensor.numel() == tensor.untyped_storage().size() // 4)


def test_arrays_share_memory_with_tensors_that_lie_so_and_are_copies_of_others():
    whole = torch.arange(24.0).reshape(4, 6).requires_grad_()
    turned = layout.Layout((1, 0))
    assert layout.layout_of(whole).array(whole).ctypes.data == whole.data_ptr()
    assert turned.array(whole.t()).ctypes.data == whole.data_ptr()
    part = whole[1:, 1:3]
    copy = layout.layout_of(part).array(part)
    assert copy.flags.c_contiguous and copy.tolist() == part.tolist() and copy.ctypes.data != part.data_ptr()
    assert torch.equal(turned.held(whole), whole) and turned.held(whole).stride() == (1, 4)
    assert layout.exact_strides(whole.t()) == (1, 6) and layout.exact_strides(part) is None
