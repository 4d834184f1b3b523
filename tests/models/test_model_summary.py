"""Summaries: shapes, parameters and multiply-adds of every layer, and nothing about the model changes."""

from __future__ import annotations

import json

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError
from graphc.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.fc = nn.Linear(8, 5)
        self.unused = nn.Linear(100, 100, bias=False)

    def forward(self, x):
        x = self.features(x).mean((2, 3))
        x = self.fc(x)
        return {"scores": x, "again": F.linear(x, gc.ones(2, 5))}


def rows(result) -> dict[str, object]:
    return {layer.path: layer for layer in result.layers}


def test_every_layer():
    summary = gc.summary(Net(), gc.zeros(2, 3, 6, 4))
    layers = rows(summary)
    assert list(layers) == ["", "features", "features.0", "features.1", "features.2", "fc", "unused"]
    conv = layers["features.0"]
    assert (conv.kind, conv.name, conv.depth, conv.calls) == ("Conv2d", "0", 2, 1)
    assert conv.outputs == ((2, 8, 6, 4),)
    assert conv.parameters == 8 * 3 * 9 + 8
    assert conv.multiply_adds == 2 * 8 * 6 * 4 * 3 * 9
    assert layers["fc"].multiply_adds == 2 * 8 * 5
    assert layers["features"].multiply_adds == conv.multiply_adds
    assert layers["features"].parameters == conv.parameters + 16
    assert layers[""].multiply_adds == conv.multiply_adds + 2 * 8 * 5 + 2 * 5 * 2
    assert layers[""].outputs == ((2, 5), (2, 2))
    assert layers["unused"].calls == 0
    assert layers[""].parameters == sum(p.numel() for p in Net().parameters())
    assert summary.input_bytes == 2 * 3 * 6 * 4 * 4
    assert layers["features.1"].state_bytes == 4 * 8 * 4 + 8
    assert layers[""].output_bytes == 4 * (3 * 2 * 8 * 6 * 4 + 2 * 5)


def test_the_text_and_the_data():
    summary = gc.summary(Net(), np.zeros((2, 3, 6, 4), np.float32))
    text = str(summary)
    assert "    0: Conv2d" in text
    assert "[2, 5] [2, 2]" in text
    assert "10,000" in text
    assert "(not called)" in text
    assert "0: Conv2d" not in summary.text(depth=1)
    data = json.loads(json.dumps(summary.to_dict()))
    assert data["parameters"] == summary.total.parameters
    assert data["layers"][2]["outputs"] == [[2, 8, 6, 4]]


def test_nothing_changes():
    net = Net().train()
    before = {name: t.numpy().copy() for name, t in net.state_dict().items()}
    state = gc.get_rng_state().tolist()
    gc.summary(net, gc.ones(2, 3, 6, 4))
    for name, tensor in net.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), before[name])
    assert gc.get_rng_state().tolist() == state
    assert not any(m._forward_hooks for m in net.modules())


def test_hooks_are_removed_after_an_error():
    net = Net()
    with pytest.raises(RuntimeError):
        gc.summary(net, gc.zeros(2, 4, 6, 4))
    assert not any(m._forward_hooks for m in net.modules())


def test_shared_modules_and_frozen_parameters():
    shared = nn.Linear(4, 4)
    model = nn.Sequential(shared, nn.ReLU(), shared)
    shared.weight.requires_grad_(False)
    summary_rows = rows(gc.summary(model, gc.zeros(3, 4)))
    assert summary_rows["0"].calls == 2
    assert summary_rows["0"].multiply_adds == 2 * 3 * 16
    assert (summary_rows[""].parameters, summary_rows[""].trainable) == (20, 4)


def test_transposed_grouped_and_batched_products():
    class Products(nn.Module):
        def __init__(self):
            super().__init__()
            self.up = nn.ConvTranspose2d(4, 6, 3, stride=2)
            self.grouped = nn.Conv2d(6, 12, 3, groups=3)

        def forward(self, x):
            y = self.grouped(self.up(x)).flatten(2)
            return y @ y.transpose(1, 2)

    summary_rows = rows(gc.summary(Products(), gc.zeros(2, 4, 5, 5)))
    assert summary_rows["up"].multiply_adds == 2 * 4 * 5 * 5 * 6 * 9
    assert summary_rows["grouped"].multiply_adds == 2 * 12 * 9 * 9 * 2 * 9
    assert (
        summary_rows[""].multiply_adds - summary_rows["up"].multiply_adds - summary_rows["grouped"].multiply_adds
        == 2 * 12 * 12 * 81
    )


def test_products_inside_of_custom_functions_count():
    class Product(gc.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g @ b.t(), a.t() @ g

    class Custom(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(gc.ones(4, 5))

        def forward(self, x):
            return Product.apply(x, self.weight)

    assert gc.summary(Custom(), gc.zeros(3, 4)).total.multiply_adds == 60


def test_only_modules():
    with pytest.raises(ArgumentError, match="shows a Module, got function"):
        gc.summary(lambda x: x, gc.zeros(1))


def test_products_of_a_scan_count_for_each_step():
    class Steps(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x):
            return gc.scan(lambda h, t: (gc.tanh(self.inner(h) + t),) * 2, x[0], x)[1]

    assert gc.summary(Steps(), gc.zeros(7, 3, 4)).total.multiply_adds == 7 * 3 * 4 * 4
