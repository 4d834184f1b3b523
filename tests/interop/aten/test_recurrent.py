"""Rules of recurrent networks."""

from __future__ import annotations

import pytest

import graphc
from graphc.errors import UnsupportedError
from graphc.interop.aten.table import find
from tests.interop.aten.compare import Sample, check, torch

X, H = torch.linspace(-1, 1, 24).reshape(3, 2, 4), torch.linspace(-1, 1, 6).reshape(2, 3)
_BY = torch.linspace(-0.7, 0.9, 12 * 4).reshape(12, 4), torch.linspace(-0.6, 0.8, 12 * 3).reshape(12, 3)
_BIAS = torch.linspace(-0.1, 0.3, 12)
LAYER = [*_BY, _BIAS, _BIAS * 2]
GRU = [t[:9] for t in LAYER]
PLAIN = [t[:3] for t in LAYER]
SAMPLES: list[Sample] = [
    ("lstm.input", X, [H[None], H[None] * 2], LAYER, True, 1, 0.0, False, False, False),
    ("lstm.input", X.transpose(0, 1), [H[None], H[None]], LAYER[:2], False, 1, 0.0, False, False, True),
    ("gru.input", X, torch.stack([H, H * 2]), [*GRU, *GRU], True, 1, 0.0, False, True, False),
    ("rnn_tanh.input", X, H[None], PLAIN, True, 1, 0.5, False, False, False),
    ("rnn_relu.input", X, H[None], PLAIN, True, 1, 0.0, True, False, False),
    ("lstm_cell", X[0], [H, H * 2], *LAYER),
    ("gru_cell", X[0], H, *GRU),
    ("rnn_tanh_cell", X[0], H, *PLAIN),
    ("rnn_relu_cell", X[0], H, *PLAIN[:2]),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample[0])
def test_an_operator_gives_what_pytorch_gives(sample: Sample):
    check(sample)


def layer_of(reverse: bool, *more: object) -> Sample:
    """One direction of a layer as PyTorch's kernel for CPUs takes it."""
    return ("mkldnn_rnn_layer", X, *LAYER, H[None], H[None] * 2, reverse, [], 2, 3, 1, True, False, False, *more)


def _backward_of(reverse: bool, *more: object) -> Sample:
    """Its backward operator, after what the kernel has kept."""
    x, *weights, h, c = [t.clone() for t in (X, *LAYER, H[None], H[None] * 2)]
    out, hy, cy, kept = torch.ops.aten.mkldnn_rnn_layer(*layer_of(reverse, True)[1:])
    rest = (reverse, 2, 3, 1, True, True, False, [], False, kept)
    return ("mkldnn_rnn_layer_backward", x, *weights, h, c, out, hy, cy, out * 2, hy, cy + 1, *rest)


FIRST: list[Sample] = [layer_of(reverse, False) for reverse in (False, True)]
MORE: list[Sample] = [_backward_of(reverse) for reverse in (False, True)]


@pytest.mark.parametrize("sample", FIRST, ids=lambda sample: sample[0])
def test_a_layer_of_pytorch_s_kernel(sample: Sample):
    check(sample, 3)


@pytest.mark.parametrize("sample", MORE, ids=lambda sample: sample[0])
def test_its_backward_operator(sample: Sample):
    check(sample)


def test_a_layer_is_one_scan_whatever_its_length():
    lstm = find("aten.lstm.input")
    assert lstm is not None
    parameters = [graphc.tensor(t.numpy()) for t in LAYER]

    def layers(x, h):
        return lstm(x, [h, h], parameters, True, 1, 0.0, False, False, False)

    for length in (3, 30):
        ops = [n.op.name for n in graphc.trace(layers, graphc.ones(length, 2, 4), graphc.ones(1, 2, 3)).nodes()]
        assert ops.count("scan") == 1


def test_parameters_of_no_known_layer_are_refused():
    lstm = find("aten.lstm.input")
    assert lstm is not None
    with pytest.raises(UnsupportedError, match="3 parameters"):
        lstm(graphc.ones(3, 2, 4), [], [graphc.ones(1)] * 3, True, 1, 0.0, False, False, False)
    layer = find("aten.mkldnn_rnn_layer.default")
    assert layer is not None
    with pytest.raises(UnsupportedError, match="only LSTM layers"):
        layer(*[graphc.ones(3, 2, 4)] * 7, False, [], 3, 3, 1, True, False, False, False)
