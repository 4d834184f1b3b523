"""Compiled functions with named dimensions: one trace for all sizes, checked sizes, assumptions with their lines."""

from __future__ import annotations

import pickle

import pytest

import graphc as gc
from graphc import nn
from graphc.base.sizes.size import UndecidedSize
from graphc.compiler.stages import Stages
from graphc.errors import ShapeError
from graphc.nn import functional as F
from tests.calls.sized import BATCH, TIME, ones, same


def test_one_trace_serves_all_sizes(traces):
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4), nn.Softmax(-1))
    compiled = gc.compile(model, dims={"input": (BATCH,)})
    for size in (1, 3, 5, 17, 3, 64):
        x = gc.rand(size, 8)
        same(compiled(x), model(x))
    assert len(traces) == 1


def test_a_branch_on_a_size_leads_to_a_second_trace_that_names_its_line(traces, told_reasons):
    @gc.compile(dims={"x": (BATCH, TIME)})
    def f(x):
        if x.shape[1] > 10:
            return x * 2
        return x + 1

    for time in (3, 10, 11, 100, 4):
        x = gc.rand(2, time)
        same(f(x), x * 2 if time > 10 else x + 1)
    assert len(traces) == 2
    (message,) = told_reasons()
    assert "sizes: traced for time <= 10 (asked at" in message and "test_sized_traces.py" in message
    assert "now batch = 2, time = 11" in message


def test_sizes_that_code_returns_or_keeps_are_those_of_the_call(traces):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.seen = None

        def forward(self, x):
            self.seen = x.shape[0]
            return x + 1, x.shape, {"half": x.shape[1] / 2, "count": x.numel()}, x.size(1) - 1

    model = Net()
    compiled = gc.compile(model, dims={"x": (BATCH, TIME)})
    for batch, time in ((2, 3), (4, 6), (1, 1)):
        y, shape, numbers, less = compiled(ones(batch, time))
        assert shape == (batch, time) == y.shape and all(type(n) is int for n in shape)
        assert numbers == {"half": time / 2, "count": batch * time} and less == time - 1
        assert type(numbers["half"]) is float and model.seen == batch
    assert len(traces) == 1


def test_numbers_and_sizes_are_open_together(traces):
    @gc.compile(dims={"x": (BATCH,)})
    def f(x, scale):
        return x * scale

    for batch, scale in ((2, 0.5), (3, 0.25), (4, 0.75), (2, 1.5)):
        same(f(ones(batch, 3), scale), ones(batch, 3) * scale)
    assert len(traces) <= 2


def test_a_copy_has_the_dimensions():
    model = nn.Linear(3, 3)
    again = pickle.loads(pickle.dumps(gc.compile(model, dims=[(BATCH,)])))
    with pytest.raises(ShapeError, match="batch is 65"):
        again(ones(65, 3))
    assert again(ones(64, 3)).shape == (64, 3)


def test_a_trace_is_a_graph_with_dimensions():
    graph = gc.trace(nn.Linear(3, 2), ones(4, 3), dims=[(BATCH,)])
    assert [str(v.type) for v in graph.outputs] == ["f32[batch,2]"] and not graph.assumptions
    compiled = gc.compile(graph)
    for size in (1, 5):
        assert compiled(ones(size, 3)).shape == (size, 2)
    with pytest.raises(ShapeError, match="batch is 65"):
        compiled(ones(65, 3))


def signatures(compiled) -> list[str]:
    return sorted(v.program.signature for v in compiled.variants)


def test_one_program_serves_all_sizes_forward_and_backward(traces):
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
    compiled = gc.compile(model, dims=[(BATCH,)])
    for size in (3, 1, 64, 17):
        x = gc.randn(size, 8, requires_grad=True)
        gradients = []
        for function in (compiled, model):
            model.zero_grad()
            x.grad = None
            (function(x) ** 2).mean().backward()
            gradients.append([t.grad.clone() for t in (x, *model.parameters())])
        for a, b in zip(*gradients, strict=True):
            same(a, b)
    assert sum(target is model for target in traces) == 1
    (forward,) = signatures(compiled)
    assert forward.startswith("Sequential.forward(input: f32[batch,8])")


def test_strided_convolutions_have_one_program_for_sides_of_all_remainders():
    net = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2, padding=1))
    compiled = gc.compile(net, dims={"input": (gc.Dim("n"), None, gc.Dim("h"), gc.Dim("w"))})
    with gc.no_grad():
        for n, h, w in ((1, 64, 64), (2, 63, 95), (1, 50, 70)):
            x = gc.randn(n, 3, h, w)
            assert gc.allclose(compiled(x), net(x), rtol=1e-4, atol=1e-5)
    assert len(compiled.programs) == 1


def test_common_sizes_have_programs_of_their_own():
    model = nn.Linear(8, 4)
    compiled = gc.compile(model, dims=[(gc.Dim("batch", 1, 64, common=(1, 32)),)])
    with gc.no_grad():
        for size in (3, 1, 32, 17, 1):
            x = gc.randn(size, 8)
            same(compiled(x), model(x))
    assert [s.partition("[")[2].partition(",")[0] for s in signatures(compiled)] == ["1", "32", "batch"]


def test_sizes_that_vary_take_two_programs_at_most():
    compiled = gc.compile(lambda x: (x.mean(0), x.shape[0], x.sum() / x.shape[0]), dims="auto")
    for size in (3, 1, 17, 5, 3):
        mean, count, total = compiled(gc.ones(size, 8))
        assert count == size and total.item() == 8.0 and mean.tolist() == [1.0] * 8
    assert len(compiled.variants) == 2


def test_what_has_no_program_for_all_sizes_gets_one_for_each_and_says_so(monkeypatch, caplog):
    tried = []

    def refuse(graph, *args, **kwargs):
        if graph.dims:
            tried.append(graph)
            raise UndecidedSize("batch <= 7 depends on the sizes of a call")
        return Stages(graph, *args, **kwargs)

    monkeypatch.setattr("graphc.calls.machine._stages", refuse)
    model = nn.Linear(8, 4)
    compiled = gc.compile(model, dims=[(BATCH,)])
    with gc.no_grad():
        for size in (3, 5, 3):
            x = gc.randn(size, 8)
            same(compiled(x), model(x))
    assert len(compiled.variants) == 2 and len(tried) == 1
    assert "Linear is compiled for each size of its dimensions: batch <= 7 depends" in caplog.text


@pytest.mark.parametrize("dims", ["auto", [(1, gc.Dim("time", 1, 512))]])
def test_what_is_assumed_of_a_dimension_limits_it_in_the_program(dims):
    class Places(nn.Module):
        def __init__(self):
            super().__init__()
            self.places = nn.Embedding(128, 4)

        def forward(self, x):
            return x + self.places.weight[: x.shape[1]]

    model = Places()
    compiled = gc.compile(model, dims=dims)
    with gc.no_grad():
        for time in (5, 9, 128, 3):
            x = gc.randn(1, time, 4)
            same(compiled(x), model(x))
    assert len(compiled.variants) == (2 if dims == "auto" else 1)


def _gradient_of_a_row_that_meets_all(x):
    x = x.clone().requires_grad_()
    (x * x[:1]).sum().backward()
    return x.grad


@pytest.mark.parametrize(
    ("function", "least"),
    [
        (lambda x: gc.arange(x.shape[0] - 1, -1, -1) * x[:, 0], 1),
        (lambda x: 1 / gc.full((x.shape[0],), -1.0).sum() + x.sum(), 0),
        (_gradient_of_a_row_that_meets_all, 1),
    ],
    ids=["counted down", "sum of no negative numbers", "gradient of a row that meets all"],
)
@pytest.mark.parametrize("size", [0, 1, 2, 7])
def test_ends_of_ranges_are_as_eager(function, least, size):
    x = gc.arange(3.0 * max(size, least)).reshape(-1, 3)
    same(gc.compile(function, dims={0: (gc.Dim("n", least, 64),)})(x), function(x))


class Pyramid(nn.Module):
    """Five halvings, and as many doublings that join the skipped levels."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([nn.Conv2d(3 if i == 0 else 4, 4, 3, stride=2, padding=1) for i in range(5)])
        self.smooth = nn.Conv2d(8, 4, 3, padding=1)

    def forward(self, x):
        levels = [x := down(x) for down in self.down]
        for level in reversed(levels[:-1]):
            x = self.smooth(gc.cat([level, F.interpolate(x, scale_factor=2.0)], 1))
        return x


def test_a_pyramid_has_a_trace_and_a_program_for_each_residue(traces):
    model = Pyramid()
    height, width = gc.Dim("height"), gc.Dim("width")
    compiled = gc.compile(model, dims={"x": (None, None, height, width)})
    for count, size in [(1, (64, 64)), (1, (96, 64)), (1, (128, 160)), (2, (63, 64)), (2, (31, 96)), (2, (32, 32))]:
        x = gc.rand(1, 3, *size)
        same(compiled(x), model(x))
        assert len(traces) == len(compiled.programs) == count, size


def test_adaptive_pools_have_one_program_for_all_sizes(traces):
    model = nn.AdaptiveAvgPool1d(3)
    compiled = gc.compile(model, dims={"input": (None, None, gc.Dim("length", 2, 256))})
    for length in (32, 10, 5, 2, 100):
        x = gc.rand(1, 2, length)
        same(compiled(x), model(x))
    assert len(traces) == len(compiled.programs) == 1


def test_a_product_of_sizes_is_divided_by_a_number(traces):
    compiled = gc.compile(lambda x: x.reshape(-1, 3) * 2, dims={"x": (BATCH, TIME)})
    for shape in ((4, 6), (5, 9), (7, 3)):
        x = gc.rand(*shape)
        same(compiled(x), (x * 2).reshape(-1, 3))
    assert len(traces) == len(compiled.programs) == 1


def test_pools_with_overlapping_windows_have_one_program_for_all_planes():
    model = nn.MaxPool2d(5, 1, 2)
    compiled = gc.compile(model, dims={"input": (None, None, gc.Dim("height"), gc.Dim("width"))})
    for size in ((10, 10), (2, 2), (1, 3), (12, 40)):
        x = gc.rand(1, 32, *size)
        same(compiled(x), model(x))
    assert len(compiled.programs) == 1


def test_the_first_call_gives_the_expected_size_of_a_dimension_without_hint():
    rows, time = gc.Dim("rows"), gc.Dim("time", hint=8)
    double = gc.compile(lambda x: x * 2, dims={"x": (rows, time)})
    few = gc.compile(lambda x: x * 2, dims={"x": (rows, time)})
    for compiled, sizes, expected in ((double, (100, 3), (100, 8)), (few, (2, 9), (2, 8))):
        for size in (sizes, (7, 64), (1, 1)):
            assert compiled(gc.ones(*size)).shape == size
        (variant,) = compiled.variants
        assert tuple(d.hint for d in variant.traced.graph.dims.values()) == expected
    with pytest.raises(ShapeError):
        double(gc.ones(3))
