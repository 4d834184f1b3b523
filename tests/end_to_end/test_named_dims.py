"""Whole models traced once with named dimensions: nothing is assumed of sizes, and for any size they are as eager."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.ir.graph.graph import input_class, input_path
from graphc.ir.graph.interpret import bind, evaluate
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import collect_data, print_graph
from graphc.nn import functional as F

BATCH, TIME = gc.Dim("batch", 1, 64), gc.Dim("time", 1, 512, hint=128)
SIDE, HIGH = gc.Dim("side", 1, 16, hint=4), gc.Dim("high", 1, 16, hint=4)


class Block(nn.Module):
    def __init__(self, width: int, heads: int, fused: bool):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        b, t, c = x.shape
        qkv = self.qkv(self.first(x)).split(c, dim=2)
        q, k, v = (p.view(b, t, self.heads, c // self.heads).transpose(1, 2) for p in qkv)
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) / (c // self.heads) ** 0.5
            mask = gc.tril(gc.ones(t, t, dtype=gc.bool_))
            y = scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v
        x = x + self.out(y.transpose(1, 2).contiguous().view(b, t, c))
        return x + self.mlp(self.second(x))


class GPT(nn.Module):
    def __init__(self, fused: bool):
        super().__init__()
        self.tokens, self.places = nn.Embedding(50, 16), nn.Embedding(512, 16)
        self.blocks = nn.Sequential(Block(16, 2, fused), Block(16, 2, fused))
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 50, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(gc.arange(ids.shape[1]))
        return self.head(self.norm(self.blocks(x)))


class Sliced(nn.Module):
    """A table of positions of which the first are taken, as MiniLM has it, and means over what a mask leaves."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(50, 16), nn.Embedding(512, 16)
        self.register_buffer("ids", gc.arange(512).reshape(1, 512))
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2)

    def forward(self, ids, mask):
        b, t = ids.size()
        x = self.words(ids) + self.places(self.ids[:, :t])
        hidden = (1.0 - mask[:, None, :].expand(b, t, t).float()) * -1e4
        x = x * gc.softmax(hidden.mean(-1), -1).unsqueeze(-1)
        x = self.layers(x, src_key_padding_mask=mask == 0)
        weights = mask.unsqueeze(-1).expand(x.size()).float()
        x = (x * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return F.normalize(x, p=2, dim=1)


class Residual(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside))
        self.second = nn.Sequential(nn.Conv2d(outside, outside, 3, 1, 1, bias=False), nn.BatchNorm2d(outside))
        self.short = nn.Conv2d(inside, outside, 1, stride)

    def forward(self, x):
        return F.relu(self.second(F.relu(self.first(x))) + self.short(x))


def resnet():
    head = [nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(
        *head, Residual(8, 8, 1), Residual(8, 16, 2), nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(1), nn.Linear(16, 10)
    )


def digits():
    convolutions = [nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3), nn.ReLU()]
    return nn.Sequential(*convolutions, nn.Flatten(), nn.Dropout(0.5), nn.Linear(8 * 12 * 12, 10), nn.LogSoftmax(1))


class UNet(nn.Module):
    def __init__(self, mode: str):
        super().__init__()
        self.mode = mode
        self.down = nn.ModuleList([self._pair(3, 4), self._pair(4, 8), self._pair(8, 8)])
        self.up = nn.ModuleList([self._pair(16, 4), self._pair(8, 4)])
        self.turned = nn.ConvTranspose2d(4, 4, 2, 2)
        self.last = nn.Conv2d(4, 2, 1)

    @staticmethod
    def _pair(inside, outside):
        return nn.Sequential(nn.Conv2d(inside, outside, 3, padding=1), nn.GroupNorm(2, outside), nn.SiLU())

    def forward(self, x):
        a = self.down[0](x)
        b = self.down[1](F.max_pool2d(a, 2))
        c = self.down[2](F.avg_pool2d(b, 2))
        if self.mode == "size":
            c = F.interpolate(c, size=b.shape[2:], mode="bilinear", align_corners=True)
        else:
            c = F.interpolate(c, scale_factor=2, mode=self.mode)
        d = self.up[0](gc.cat([c, b], dim=1))
        return self.last(self.up[1](gc.cat([self.turned(d), a], dim=1)))


class Steps(nn.Module):
    """A function along a sequence, with a first state made of sizes."""

    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(12, 4)

    def forward(self, x):
        first = gc.zeros(x.shape[0], 4)
        last, all_ = gc.scan(lambda h, s: ((n := gc.tanh(self.cell(gc.cat([h, s], 1)))), n), first, x.transpose(0, 1))
        return last, all_ / x.shape[1] + x.mean((0, 1))[:4] * x.std(0, unbiased=False).sum()


def ids(*shape):
    return gc.randint(0, 50, shape)


def floats(*shape):
    return gc.randn(*shape)


def masks(*shape):
    return (gc.rand(*shape) > 0.3).long()


MODELS = {
    "mlp": (
        lambda: nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.BatchNorm1d(16), nn.Linear(16, 4), nn.Softmax(-1)),
        [(floats, (BATCH, 8))],
    ),
    "digits": (digits, [(floats, (BATCH, 1, 28, 28))]),
    "gru": (lambda: nn.GRU(8, 6, num_layers=2, batch_first=True), [(floats, (BATCH, TIME, 8))]),
    "lstm": (lambda: nn.LSTM(8, 6, bidirectional=True), [(floats, (TIME, BATCH, 8))]),
    "gpt": (lambda: GPT(fused=True), [(ids, (BATCH, TIME))]),
    "gpt, written out": (lambda: GPT(fused=False), [(ids, (BATCH, TIME))]),
    "encoder": (Sliced, [(ids, (BATCH, TIME)), (masks, (BATCH, TIME))]),
    "resnet": (resnet, [(floats, (BATCH, 3, 32, 32))]),
    "u-net": (lambda: UNet("nearest"), [(floats, (1, 3, 16 * SIDE, 16 * HIGH))]),
    "u-net, bilinear": (lambda: UNet("bilinear"), [(floats, (BATCH, 3, 16 * SIDE, 16 * SIDE))]),
    "u-net, to a size": (lambda: UNet("size"), [(floats, (1, 3, 16 * SIDE, 16 * HIGH))]),
    "scan": (Steps, [(floats, (BATCH, TIME, 8))]),
}
SIZES = [
    {"batch": 1, "time": 1, "side": 1, "high": 1},
    {"batch": 2, "time": 3, "side": 2, "high": 1},
    {"batch": 3, "time": 16, "side": 3, "high": 2},
    {"batch": 5, "time": 7, "side": 1, "high": 3},
    {"batch": 1, "time": 33, "side": 2, "high": 2},
    {"batch": 7, "time": 2, "side": 4, "high": 1},
]


def shape_of(shape, sizes):
    sizes_by_name = {d: sizes[d] for d in ("batch", "time", "side", "high")}
    return tuple(
        16 * sizes_by_name[str(s)[3:]] if str(s).startswith("16*") else sizes_by_name.get(str(s), s) for s in shape
    )


@pytest.mark.parametrize("name", MODELS)
def test_one_trace_is_right_for_all_sizes_and_assumes_nothing(name):
    make, inputs = MODELS[name]
    gc.manual_seed(0)
    model = make().eval()
    with gc.no_grad():
        examples = [kind(*shape_of(shape, SIZES[1])) for kind, shape in inputs]
        graph = gc.trace(model, *examples, dims=[shape for _, shape in inputs])
    assert [str(a) for a in graph.assumptions] == []
    again = parse_graph(print_graph(graph), collect_data(graph))
    assert again == graph
    for sizes in SIZES:
        arguments = [kind(*shape_of(shape, sizes)) for kind, shape in inputs]
        fixed = bind(graph, {n: sizes[n] for n in graph.dims})
        assert not fixed.dims
        plain = iter(arguments)
        arrays = [
            next(plain)._data if input_class(v) == "input" else graph.bound[input_path(v)]._data for v in graph.inputs
        ]
        result = evaluate(fixed, arrays)
        with gc.no_grad():
            compare(result, model(*arguments), f"{name} at {sizes}")


def compare(result, expected, title):
    flat = expected if isinstance(expected, tuple) else (expected,)
    flat_expected = [t for e in flat for t in (e if isinstance(e, tuple) else (e,))]
    assert len(result) == len(flat_expected)
    for a, b in zip(result, flat_expected, strict=True):
        np.testing.assert_allclose(a, b.numpy(), rtol=1e-4, atol=1e-5, err_msg=title)


@pytest.mark.sampled(50)
@pytest.mark.parametrize("name", MODELS)
def test_one_program_runs_for_all_sizes(name):
    make, inputs = MODELS[name]
    gc.manual_seed(0)
    model = make().eval()
    compiled = gc.compile(model, dims=[shape for _, shape in inputs])
    with gc.no_grad():
        for sizes in (*SIZES, {"batch": 32, "time": 41, "side": 2, "high": 3}):
            arguments = [kind(*shape_of(shape, sizes)) for kind, shape in inputs]
            result = compiled(*arguments)
            result = result if isinstance(result, tuple) else (result,)
            result = [t.numpy() for e in result for t in (e if isinstance(e, tuple) else (e,))]
            compare(result, model(*arguments), f"{name} at {sizes}")
    assert len(compiled.variants) == 1


def test_joined_tensors_of_open_sizes_are_flattened_by_one_program():
    compiled = gc.compile(lambda x: gc.cat([x, x]).reshape(-1) * 2, dims=[(gc.Dim("rows"), gc.Dim("columns"))])
    for shape in ((2, 3), (1, 1), (5, 7)):
        x = gc.rand(*shape)
        assert compiled(x).tolist() == 2 * (x * 2).reshape(-1).tolist()
    assert len(compiled.programs) == 1


def test_code_for_all_sizes_relies_on_assumptions_that_limit_no_single_dimension():
    """Passes asked again whether ``rows*columns - 2`` is negative; each size got a program."""
    rows, columns = gc.Dim("rows"), gc.Dim("columns")

    def f(x):
        return gc.cat([x.reshape(-1), x.sum().expand(x.shape[0] * x.shape[1] - 2)])

    compiled = gc.compile(f, dims={"x": (rows, columns)})
    for shape in ((2, 3), (3, 1), (1, 4), (2, 1)):
        x = gc.ones(*shape)
        assert compiled(x).tolist() == f(x).tolist()
    assert len(compiled.programs) == 1
