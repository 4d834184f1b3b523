"""Signal-to-noise ratios of layers with narrow weights: by hand, for outliers, and each layer by itself."""

from __future__ import annotations

from math import inf, log10, nan

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.dtypes import bfloat16, narrow, widen
from graphc.checks.weight_noise import WeightNoise, table
from graphc.nn import functional as F
from graphc.passes import precision as narrowing


def layers(model, *examples, precision: str = "int8") -> dict[str, WeightNoise]:
    report = gc.check(model, *examples, precision=precision)
    assert report.good and report.precision is not None
    return {layer.name: layer for layer in report.precision.layers}


def linear(weight) -> nn.Linear:
    layer = nn.Linear(*np.shape(weight)[::-1], bias=False)
    with gc.no_grad():
        layer.weight.copy_(gc.tensor(np.array(weight, np.float32)))
    return layer


def random(*shape: int, seed: int = 0) -> gc.Tensor:
    return gc.tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def test_a_case_of_two_by_two_by_hand(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(narrowing, "SMALLEST", 4)
    # Rows of scale 1: 0.4 becomes 0, 0.75 becomes 1. The inputs give [127.4, -253.25] in f32, [127, -253] in int8.
    rows = layers(nn.Sequential(linear([[127, 0.4], [0.75, -127]])), gc.tensor([[1.0, 1.0], [1.0, 2.0]]))
    signal = 127.4**2 + 126.25**2 + 127.8**2 + 253.25**2
    noise = 0.4**2 + 0.25**2 + 0.8**2 + 0.25**2
    assert rows["0.weight"].snr == pytest.approx(10 * log10(signal / noise), abs=1e-3)


def test_an_outlier_takes_the_digits_of_its_layer():
    model = nn.Sequential(*(linear(random(64, 64, seed=i).numpy() / 8) for i in range(4)))
    with gc.no_grad():
        model[1].weight[5] = 0.0
        model[2].weight[:, 5] = 200.0  # multiplies a channel that is always 0, and sets the scale of all rows
    snr = [row.snr for row in layers(model, random(8, 64)).values()]
    assert len(snr) == 4 and snr[2] < 10 and min(snr[0], snr[1], snr[3]) > 40


@pytest.mark.parametrize("precision", ["bf16", "f16", "int4", "int8_dot"])
def test_rows_are_in_the_order_of_the_model(precision: str):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.last, self.first = nn.Linear(64, 64), nn.Linear(64, 64)

        def forward(self, x):
            return self.last(F.relu(self.first(x)))

    rows = layers(Net(), random(4, 64), precision=precision)
    assert list(rows) == ["first.weight", "last.weight"] and {row.stored for row in rows.values()} == {precision}
    assert all(10 < row.snr < 80 for row in rows.values())


def test_a_layer_is_measured_by_itself():
    """The error of a layer with exact weights is 0, whatever the layers before it do."""
    x = random(4, 64)
    exact = 127 * np.eye(64)
    rows = layers(nn.Sequential(linear(random(64, 64).numpy()), nn.ReLU(), linear(exact)), x)
    assert rows["0.weight"].snr < 60 and rows["2.weight"].snr == inf


def test_the_ratio_is_that_of_the_rounded_weight():
    weight, x = random(64, 64).numpy(), random(4, 64, seed=1)
    exact = x.numpy().astype(np.float64) @ weight.T.astype(np.float64)
    error = exact - x.numpy().astype(np.float64) @ widen(narrow(weight, bfloat16)).T.astype(np.float64)
    expected = 10 * log10(np.square(exact).sum() / np.square(error).sum())
    assert layers(nn.Sequential(linear(weight)), x, precision="bf16")["0.weight"].snr == pytest.approx(
        expected, abs=0.01
    )


def test_overflow_leaves_no_signal():
    row = layers(nn.Sequential(linear(np.full((64, 64), 1e5))), gc.ones(2, 64), precision="f16")["0.weight"]
    assert row.snr == -inf


class Shared(nn.Module):
    """A table for the lookup and the last product, and a recurrent layer."""

    def __init__(self):
        super().__init__()
        self.table, self.lstm = nn.Embedding(100, 64), nn.LSTM(64, 64)
        self.head = nn.Linear(64, 100, bias=False)
        self.head.weight = self.table.weight

    def forward(self, x):
        return self.head(self.lstm(self.table(x))[0])


def test_a_shared_weight_and_those_of_a_loop_have_a_row_each():
    gc.manual_seed(0)
    rows = layers(Shared().eval(), gc.tensor(np.arange(12).reshape(6, 2)))
    assert list(rows) == ["table.weight", "lstm.weight_ih_l0", "lstm.weight_hh_l0"]
    assert all(30 < row.snr < 80 for row in rows.values())


def test_a_weight_with_folded_normalization_has_the_name_of_its_convolution():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(16, 32, 3, bias=False), nn.BatchNorm2d(32)

        def forward(self, x):
            return self.norm(self.conv(x))

    net = Net().eval()
    with gc.no_grad():
        net.norm.running_var *= 3.0
    assert list(layers(net, random(1, 16, 5, 5))) == ["conv.weight"]


def test_tables_mark_the_lowest_rows():
    rows = [WeightNoise(f"{i}.weight", "int8", snr) for i, snr in enumerate([44.0, 31.26, inf, nan, 40.0, -inf, 50.0])]
    assert table(rows).splitlines() == [
        "0.weight  int8    44.0 dB",
        "1.weight  int8    31.3 dB  <- second lowest",
        "2.weight  int8     inf dB",
        "3.weight  int8     nan dB",
        "4.weight  int8    40.0 dB  <- third lowest",
        "5.weight  int8    -inf dB  <- lowest",
        "6.weight  int8    50.0 dB",
    ]
    assert "lowest" not in table(rows[:1]) and table([]) == ""
