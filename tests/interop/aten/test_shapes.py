"""Rules that move elements."""

from __future__ import annotations

import pytest

import graphc
from graphc.interop.aten.table import TABLE
from tests.interop.aten.compare import Sample, check, torch

X, PLACES = torch.linspace(-2, 2, 24).reshape(2, 3, 4), torch.tensor([[0, 2, 1], [1, 0, 2]])
SAMPLES: list[Sample] = [
    ("narrow", X, 1, 1, 2),
    ("chunk", X, 3, 2),
    ("unsafe_split.Tensor", X, 3, 2),
    ("unsafe_split_with_sizes", X, [3, 1], 2),
    ("broadcast_to", X[0], [2, 3, 4]),
    ("broadcast_tensors", [X, X[0, 0]]),
    *[(name, [X, X]) for name in ("column_stack", "hstack", "vstack")],
    ("tile", X, [2, 1]),
    ("movedim.int", X, 0, -1),
    ("movedim.intlist", X, [0, 1], [2, 0]),
    ("meshgrid", [X[0, 0], X[0, :, 0].clone()]),
    ("meshgrid.indexing", [X[0, 0], X[0, :, 0].clone()], {"indexing": "xy"}),
    ("as_strided", X, [2, 2], [4, 2], 3),
    ("as_strided_scatter", X, torch.ones(2, 2), [2, 2], [4, 2], 3),
    ("as_strided_scatter", torch.zeros(12), X[0], [3, 4], [1, 3]),
    ("reshape", X, [-1, 8]),
    ("_reshape_alias", X, [4, 6], [6, 1]),
    *[(name, X, [4, 6]) for name in ("_reshape_copy", "view_copy")],
    ("expand_copy", X, [2, 2, 3, 4]),
    ("diagonal_copy", X, 1, 1, 2),
    ("permute_copy", X, [2, 0, 1]),
    ("unbind_copy.int", X, 1),
    *[(f"{name}_copy.{'Tensor' if name == 'slice' else 'int'}", X, 1, 2) for name in ("slice", "select", "transpose")],
    *[(name, X[:1].clone()) for name in ("alias_copy", "squeeze_copy")],
    *[(name, X, [1, 2], 1) for name in ("split_with_sizes", "split_with_sizes_copy")],
    *[(name, X) for name in ("lift", "lift_fresh_copy", "resolve_conj", "resolve_neg", "detach_copy")],
    *[(name, X) for name in ("contiguous", "mT", "mH", "adjoint", "numpy_T")],
    ("matrix_H", X[0].clone()),
    ("expand_as", X[:1].clone(), X),
    ("swapaxes", X, 0, 2),
    ("swapdims", X, 0, 1),
    ("t_", X[0].clone()),
    *[(name, X, 0, 2) for name in ("transpose_", "swapaxes_", "swapdims_")],
    *[(name, X[:1].clone()) for name in ("squeeze_", "detach_")],
    ("squeeze_.dims", X[:1].clone(), [0, 1]),
    ("flatten.using_ints", X, 1),
    ("unflatten.int", X, 2, [2, -1]),
    ("split.sizes", X, [1, 2], 1),
    ("pad", X, [1, 2], "reflect"),
    ("pad", X, [1, -1, 2, 0], "constant", 3.0),
    ("reflection_pad3d", X[None], [1, 2, 1, 0, 0, 1]),
    ("replication_pad3d", X[None], [1, 2, 1, 0, 0, 1]),
    ("to.dtype", X, torch.int32),
    ("to.dtype_layout", X, {"dtype": torch.float64}),
    ("to.device", X, torch.device("cpu"), torch.float64),
    ("prims.convert_element_type", X, torch.int32),
    ("to.other", PLACES, X),
    ("type_as", PLACES, X),
    ("view", X, [4, 6]),
    ("slice.Tensor", X, 1, 0, 9223372036854775807, 2),
    ("_to_copy", X, {"dtype": torch.int64}),
    ("diff", X, 1, -1, X[..., :1] - 1),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample[0])
def test_an_operator_gives_what_pytorch_gives(sample: Sample):
    check(sample)


def test_elements_are_converted_by_the_primitive_of_sizes_that_are_tensors():
    found = TABLE["prims.convert_element_type.default"](graphc.tensor([1.5]), graphc.int64)
    assert found.dtype == graphc.int64 and found.tolist() == [1]


def test_what_pytorch_copies_is_a_copy():
    given = graphc.float32, False, True
    to_other = ("to.other", graphc.ones(2), False, True)
    for name, *args in (("contiguous",), ("to.dtype", *given), ("to.device", *given), to_other):
        x, target = graphc.zeros(2, 3), name if "." in name else f"{name}.default"
        TABLE[f"aten.{target}"](x.t(), *args).add_(1)
        assert x.sum().item() == 0, name
    TABLE["aten._to_copy.default"](x, dtype=graphc.float32).add_(1)
    assert x.sum().item() == 0
    x = graphc.zeros(2)
    TABLE["aten.contiguous.default"](x).add_(1)
    assert x.sum().item() == 2
