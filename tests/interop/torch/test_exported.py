"""from_torch: modules and ExportedPrograms as modules of graphc."""

from __future__ import annotations

import copy
import warnings
from typing import Any, NamedTuple

import pytest

import graphc
from graphc.errors import ArgumentError, ShapeError, UnsupportedError
from tests.interop.torch.compare_modules import same

torch = pytest.importorskip("torch")
nn = torch.nn
SCAN: Any = pytest.importorskip("torch._higher_order_ops.scan").scan


class Net(nn.Module):
    """Tied weights, buffers of both kinds, a constant, batch statistics, writes in place, nested calls."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.drop = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5)
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.b.weight = self.a.weight
        self.a.bias.requires_grad_(False)
        self.register_buffer("scale", torch.tensor([2.0, 3.0, 4.0, 5.0]), persistent=False)
        self.shift = torch.ones(4)

    def forward(self, x: Any, *, factor: float = 2.0, more: Any = None) -> Any:
        y = self.drop(self.norm(self.conv(x)).relu_()).mean((2, 3))
        y = self.b(self.a(y)) * self.scale + self.shift
        with torch.no_grad():
            total = (y * 2).sum()
        z = y.view(-1)
        z.add_(torch.tensor(3.0))
        return {"y": y * factor, "rest": (total, [more["k"] + 1])}


X = torch.linspace(-1, 1, 4 * 3 * 6 * 6).reshape(4, 3, 6, 6)
NAMED = {"factor": 3.0, "more": {"k": torch.ones(2)}}
OURS = {"factor": 3.0, "more": {"k": graphc.ones(2)}}


def net() -> Any:
    torch.manual_seed(0)
    return Net().eval()


def tensor(x: Any) -> graphc.Tensor:
    return graphc.tensor(x.numpy().copy())


def test_a_module_keeps_names_ties_and_flags_and_has_memory_of_its_own():
    model = net()
    module = graphc.from_torch(model, (X,), NAMED)
    assert list(module.state_dict()) == list(model.state_dict())
    assert [n for n, _ in module.named_parameters()] == [n for n, _ in model.named_parameters()]
    assert [n for n, _ in module.named_buffers()] == [n for n, _ in model.named_buffers()]
    assert [n for n, _ in module.named_modules()] == [n for n, _ in model.named_modules()]
    assert module.b.weight is module.a.weight and not module.a.bias.requires_grad and not module.training
    expected = model(X, **NAMED)
    with torch.no_grad():
        model.a.weight.zero_()
    same(module(tensor(X), **OURS), expected, 1e-5, "")


def test_it_trains_as_pytorch_does_and_evaluates_after_it():
    model = net()
    model.drop.p = 0.0
    module = graphc.from_torch(model, (X,), NAMED)
    model.train()
    theirs = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 1e-3)
    ours = graphc.optim.SGD([p for p in module.train().parameters() if p.requires_grad], 1e-3)
    for _ in range(3):
        theirs.zero_grad()
        model(X, **NAMED)["y"].square().mean().backward()
        theirs.step()
        ours.zero_grad()
        (module(tensor(X), **OURS)["y"] ** 2).mean().backward()
        ours.step()
    assert module.norm.num_batches_tracked.item() == 3
    for (name, a), b in zip(module.state_dict().items(), model.state_dict().values(), strict=True):
        same(a, b, 1e-4, name)
    same(module.eval()(tensor(X), **OURS), model.eval()(X, **NAMED), 1e-4, "after training")


class _Constants(nn.Module):
    def forward(self, x: Any) -> Any:
        return x + torch.tensor([1.0, 2.0]) if self.training else x * torch.tensor([5.0, 6.0])


def test_each_mode_has_constants_of_its_own():
    model = _Constants()
    module = graphc.from_torch(model, (torch.ones(2),))
    for training in (True, False, True):
        copied = copy.deepcopy(module)
        for each in (module, copied):
            same(each.train(training)(graphc.ones(2)), model.train(training)(torch.ones(2)), 1e-6, str(training))


class _Shared(nn.Module):
    """One layer under two names, and one of its parts under a third."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
        self.b, self.norm = self.a, self.a[1]

    def forward(self, x: Any) -> Any:
        return self.norm(self.b(self.a(x)))


def test_a_layer_with_two_names_is_one():
    model, x = _Shared(), X[:, 0, 0, :3]
    module = graphc.from_torch(model, (x,))
    assert module.b is module.a and module.norm is module.a.get_submodule("1")
    assert [n for n, _ in module.named_modules()] == [n for n, _ in model.named_modules()]
    assert list(module.state_dict()) == list(model.state_dict())
    same(module(tensor(x)), model(x), 1e-5, "in training")
    module.norm.eval()
    model.norm.eval()
    same(module(tensor(x)), model(x), 1e-5, "with fixed statistics")
    for (name, a), b in zip(module.named_buffers(), model.buffers(), strict=True):
        same(a, b, 1e-5, name)


def test_named_dimensions_make_one_program_for_all_sizes():
    batch = torch.export.Dim("batch", min=2, max=64)
    model = net()
    module = graphc.from_torch(
        model, (X,), NAMED, dynamic_shapes={"x": {0: batch}, "factor": None, "more": {"k": None}}
    )
    assert str(module.dims) == "{'x': (batch, None, None, None)}"
    compiled = graphc.compile(module, dims=module.dims)
    for count in (2, 3, 4):
        same(compiled(tensor(X[:count]), **OURS), model(X[:count], **NAMED), 1e-5, str(count))
    assert len(compiled.programs) == 1
    with pytest.raises(ShapeError, match=r"batch is 1, outside of 2\.\.64"):
        module(tensor(X[:1]), **OURS)


def test_a_file_of_it_runs_without_the_module(tmp_path: Any):
    model = net()
    module = graphc.from_torch(model, (X,), NAMED)
    graphc.export(module, tensor(X), path=tmp_path / "net.gcm", **OURS)
    loaded = graphc.load(tmp_path / "net.gcm")
    same(loaded(tensor(X), graphc.ones(2)), model(X, **NAMED), 1e-5, "loaded")


def test_an_exported_program_is_taken_as_it_is():
    model = net()
    program = torch.export.export(model, (X,), NAMED)
    module = graphc.from_torch(program)
    assert list(module.state_dict()) == list(model.state_dict()) and module.b.weight is module.a.weight
    assert not module.a.bias.requires_grad and not module.training
    same(module(tensor(X), **OURS), model(X, **NAMED), 1e-5, "program")
    with pytest.raises(UnsupportedError, match="exported for evaluation"):
        module.train()
    with pytest.raises(ArgumentError, match="has its arguments"):
        graphc.from_torch(program, (X,))


def test_a_decomposed_program_writes_its_buffers():
    model = nn.BatchNorm1d(4).train()
    program = torch.export.export(model, (X[:, 0, 0, :4],)).run_decompositions()
    module = graphc.from_torch(program)
    same(module(tensor(X[:, 0, 0, :4])), model(X[:, 0, 0, :4]), 1e-5, "result")
    for (name, a), b in zip(module.named_buffers(), model.buffers(), strict=True):
        same(a, b, 1e-5, name)


@pytest.mark.parametrize("training", [False, True])
def test_a_dropout_in_place_says_of_which_mode_a_program_is(training: bool):
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5, inplace=True)).train(training)
    module = graphc.from_torch(torch.export.export(model, (torch.ones(2, 3),)))
    assert module.training is training
    with pytest.raises(UnsupportedError, match="has only that mode"):
        module.train(not training)


class _Odd(nn.Module):
    def forward(self, x: Any) -> Any:
        y = x + 1
        return torch.special.bessel_y0(y)


def test_errors_and_graphs_show_the_lines_of_the_model():
    with pytest.raises(UnsupportedError, match=r"aten\.special_bessel_y0") as error:
        graphc.from_torch(_Odd(), (torch.ones(3),))
    assert "test_exported.py" in str(error.value) and "torch.special.bessel_y0(y)" in str(error.value)
    module = graphc.from_torch(net(), (X,), NAMED)
    assert "test_exported.py:" in str(graphc.trace(module, tensor(X), **OURS))


def test_element_types_that_graphc_lacks_are_refused_with_the_name():
    class Eighth(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weight", torch.ones(2).to(torch.float8_e4m3fn))

        def forward(self, x: Any) -> Any:
            return x + self.weight.to(torch.float32)

    with pytest.raises(UnsupportedError, match=r"torch\.float8_e4m3fn") as error:
        graphc.from_torch(Eighth(), (torch.ones(2),))
    assert "weight" in str(error.value)


class Two(NamedTuple):
    """A pair with names."""

    a: Any
    b: Any


class _Pair(nn.Module):
    def forward(self, x: Any, pair: Any, flag: bool = True) -> Any:
        a, b = pair
        return type(pair)(a + x, b * 2) if flag else x


def test_named_tuples_are_taken_and_given():
    module = graphc.from_torch(_Pair(), (torch.ones(2), Two(torch.ones(2), torch.ones(2))))
    result = module(graphc.ones(2), Two(graphc.ones(2), graphc.ones(2)))
    assert type(result) is Two and result.a.tolist() == [2, 2]


class _Branch(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))


def test_branches_of_the_model_are_taken():
    module = graphc.from_torch(_Branch(), (torch.ones(2),))
    with graphc.no_grad():
        for value in (1.0, -1.0):
            x = torch.full((2,), value)
            for function in (module, graphc.compile(module)):
                same(function(tensor(x)), _Branch()(x), 1e-6, "cond")


class _Sums(nn.Module):
    def forward(self, x: Any) -> Any:
        return SCAN(lambda carry, row: (carry + row, carry * row), x[0], x)


def test_a_scan_of_the_model_is_one_here():
    x = torch.linspace(0, 1, 6).reshape(3, 2)
    module = graphc.from_torch(_Sums(), (x,))
    same(module(tensor(x)), _Sums()(x), 1e-6, "scan")
    assert [n.op.name for n in graphc.trace(module, tensor(x)).nodes()].count("scan") == 1


class _Writes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(2))

    def forward(self, x: Any) -> Any:
        self.count[0] += 1
        x.mul_(2)
        y = torch.tensor(1.0)
        y += x.sum()
        z = x.clone().unsqueeze_(0).squeeze_(0).t_()
        z[0] = self.count[0]
        return z, y


def test_writes_go_where_pytorch_puts_them():
    model, theirs = _Writes(), torch.ones(2, 3)
    module, ours = graphc.from_torch(model, (theirs.clone(),)), graphc.ones(2, 3)
    for _ in range(2):
        same(module(ours), model(theirs), 1e-6, "results")
        same(ours, theirs, 1e-6, "argument")
        same(module.count, model.count, 1e-6, "buffer")


class _Overlapping(nn.Module):
    """Buffers in the memory of each other, of which one may be written to."""

    def __init__(self, writes: bool) -> None:
        super().__init__()
        base = torch.arange(8.0)
        self.writes = writes
        for name, piece in {"whole": base, "same": base, "part": base[2:4], "calls": torch.zeros(2)}.items():
            self.register_buffer(name, piece)

    def forward(self, x: Any) -> Any:
        self.calls.add_(1)
        if self.writes:
            self.whole.add_(1)
        return x + self.part + self.same[:2] + self.calls


@pytest.mark.parametrize("through", [lambda module: module, graphc.compile])
def test_writes_to_memory_that_several_tensors_share_are_refused(through: Any, tmp_path: Any):
    path = tmp_path / "model.pt2"
    for writes in (False, True):
        model, x = _Overlapping(writes), torch.ones(2)
        program = torch.export.export(copy.deepcopy(model), (x,))
        torch.export.save(program, path)
        for module in (graphc.from_torch(model, (x,)), graphc.from_torch(program), graphc.from_pt2(path)):
            if writes:
                with pytest.raises(UnsupportedError, match="the model writes to whole, which shares its memory"):
                    through(module)(tensor(x))
            else:
                same(through(module)(tensor(x)), copy.deepcopy(model)(x), 1e-6, "read")


class _Sorted(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.sort(1), x.max(0)


def test_results_with_names_are_tuples():
    x = torch.linspace(1, 0, 6).reshape(2, 3)
    (values, order), largest = graphc.from_torch(_Sorted(), (x,))(tensor(x))
    same((values, order), tuple(x.sort(1)), 1e-6, "sorted")
    same(largest, tuple(x.max(0)), 1e-6, "largest")


def test_recurrent_layers_are_exported_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module = graphc.from_torch(nn.GRU(3, 4), (torch.ones(5, 2, 3),))
    ops = [n.op.name for n in graphc.trace(module, graphc.ones(5, 2, 3)).nodes()]
    assert ops.count("scan") == 1


def test_state_of_pytorch_is_loaded_afterwards():
    model = net()
    module = graphc.from_torch(net(), (X,), NAMED)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.5)
    module.load_state_dict(model.state_dict())
    same(module(tensor(X), **OURS), model(X, **NAMED), 1e-4, "loaded state")


class _Asks(nn.Module):
    def forward(self, x: Any) -> Any:
        return x if x.sum() > 0 else -x


def test_a_failed_export_is_an_error_of_graphc_with_pytorchs_reason():
    with pytest.raises(UnsupportedError, match=r"cannot export _Asks: .*data-dependent") as error:
        graphc.from_torch(_Asks(), (torch.ones(2),))
    assert error.value.__cause__ is not None


@pytest.mark.parametrize("enabled", [False, True])
def test_a_region_of_autocast_is_read_where_it_is_off_and_refused_where_it_is_on(enabled: bool):
    class Region(nn.Module):
        def forward(self, x: Any) -> Any:
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
                return x @ x.mT

    x = torch.randn(3, 4)
    if enabled:
        with pytest.raises(UnsupportedError, match=r"bfloat16|autocast"):
            graphc.from_torch(Region(), (x,))(tensor(x))
    else:
        same(graphc.from_torch(Region(), (x,))(tensor(x)), Region()(x), 1e-6, "region")
