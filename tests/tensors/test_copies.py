"""Copies of what is a view by another name."""

from __future__ import annotations

import pytest

import graphc
from graphc.tensors import copies

ARGUMENTS = {
    "as_strided_copy": ((2, 2), (1, 2)),
    "expand_copy": ((3, 4),),
    "narrow_copy": (0, 1, 2),
    "permute_copy": ((1, 0),),
    "select_copy": (0, 1),
    "split_copy": (2,),
    "split_with_sizes_copy": ((1, 2),),
    "transpose_copy": (0, 1),
    "unfold_copy": (0, 2, 1),
    "unsqueeze_copy": (0,),
    "view_copy": ((4, 3),),
}


@pytest.mark.parametrize("name", copies.__all__)
def test_a_copy_has_the_elements_of_the_view_and_memory_of_its_own(name):
    x = graphc.arange(12.0).reshape(3, 4)
    arguments = ARGUMENTS.get(name, ())
    view, copy = getattr(x, name.removesuffix("_copy"))(*arguments), getattr(graphc, name)(x, *arguments)
    pairs = zip(view, copy, strict=True) if isinstance(view, tuple) else [(view, copy)]
    before = x.clone()
    for a, b in pairs:
        assert graphc.equal(a, b) and a.data_ptr() != b.data_ptr()
        b.fill_(7)
    assert graphc.equal(x, before)


def test_a_copy_has_a_gradient():
    x = graphc.ones(2, 3, requires_grad=True)
    graphc.t_copy(x).sum().backward()
    assert x.grad.tolist() == [[1.0] * 3] * 2
