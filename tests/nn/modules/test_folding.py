"""Windows as columns and back, as modules."""

from __future__ import annotations

from graphc import nn
from tests.nn.compare import floats, modules_agree


def test_as_torch(torch):
    options = {"kernel_size": (2, 3), "dilation": 1, "padding": 1, "stride": 2}
    modules_agree(nn.Unfold(**options), torch.nn.Unfold(**options), floats(2, 3, 5, 6))
    modules_agree(nn.Fold((5, 6), **options), torch.nn.Fold((5, 6), **options), floats(2, 18, 9))


def test_text():
    assert repr(nn.Unfold(2)) == "Unfold(kernel_size=2, dilation=1, padding=0, stride=1)"
    assert repr(nn.Fold((4, 4), 2, stride=2)) == (
        "Fold(output_size=(4, 4), kernel_size=2, dilation=1, padding=0, stride=2)"
    )
