"""Training through ``torch.compile(backend="graphc")``: steps end where PyTorch's own do."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest

from graphc.errors import FallbackWarning

torch = pytest.importorskip("torch")
training: Any = pytest.importorskip("graphc.interop.torch.training")
fallback: Any = pytest.importorskip("graphc.interop.torch.fallback")
nn: Any = torch.nn if torch else None


class Net(nn.Module):
    """Convolution, batch norm, pooling, attention, layer norm, and an embedding tied to the last product."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(2, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.words, self.mixed = nn.Embedding(12, 8), nn.Linear(8, 24, bias=False)
        self.last_norm = nn.LayerNorm(8)

    def forward(self, x: Any, i: Any) -> Any:
        y = nn.functional.max_pool2d(torch.relu(self.norm(self.first(x))), 2).flatten(2).transpose(1, 2)
        y = y + self.words(i).unsqueeze(1)
        q, k, v = self.mixed(y).chunk(3, dim=-1)
        y = y + nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.last_norm(nn.functional.gelu(y)).mean(1) @ self.words.weight.T


X, WORDS = torch.linspace(-1, 1, 3 * 2 * 36).reshape(3, 2, 6, 6), torch.tensor([1, 5, 1])

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def trained(model: Any, call: Any, optimizer: Any, steps: int, *args: Any) -> Any:
    """The losses and the state after some steps."""
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(call(*args), WORDS)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model.state_dict()


@pytest.mark.parametrize("kind", ["SGD", "AdamW"])
def test_steps_in_float64_end_where_those_of_pytorch_do(kind: str):
    ours, theirs = Net().double(), Net().double()
    theirs.load_state_dict(ours.state_dict())
    x = X.double()
    make = getattr(torch.optim, kind)
    result = trained(ours, torch.compile(ours, backend="graphc"), make(ours.parameters(), lr=0.01), 10, x, WORDS)
    expected = trained(theirs, theirs, make(theirs.parameters(), lr=0.01), 10, x, WORDS)
    torch.testing.assert_close(result, expected, rtol=1e-10, atol=1e-12)
    assert ours.norm.num_batches_tracked == 10


def test_gradients_of_several_calls_and_backward_passes_add_up():
    ours = Net()
    theirs = copy.deepcopy(ours)
    compiled = torch.compile(ours, backend="graphc")
    for model, call in ((ours, compiled), (theirs, theirs)):
        model.eval()
        one, two = call(X, WORDS), call(X * 2, WORDS)
        loss = one.square().sum()
        loss.backward(retain_graph=True)
        loss.backward()
        two.sum().backward()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=1e-4, atol=1e-4)


def test_gradients_of_arguments_are_those_of_pytorch():
    def product(x: Any, y: Any) -> Any:
        return (x @ y).tanh(), x.detach() * 2

    args = torch.randn(3, 4, requires_grad=True), torch.randn(4, 2, requires_grad=True)
    result, other = torch.compile(product, backend="graphc")(*args)
    expected = product(*args)[0]
    gradient = torch.randn(3, 2)
    torch.testing.assert_close(
        torch.autograd.grad(result, args, gradient), torch.autograd.grad(expected, args, gradient)
    )
    assert result.requires_grad and not other.requires_grad


def test_a_second_derivative_is_an_error():
    x = torch.randn(3, requires_grad=True)
    result = torch.compile(lambda x: (x**3).sum(), backend="graphc")(x)
    (gradient,) = torch.autograd.grad(result, x, create_graph=True)
    with pytest.raises(RuntimeError, match="double backward"):
        gradient.sum().backward()


def test_dropout_draws_anew_in_each_call_and_again_what_a_seed_gives():
    model = nn.Sequential(nn.Dropout(0.5), nn.Dropout(0.25))
    compiled = torch.compile(model, backend="graphc")
    x = torch.ones(64, 64, requires_grad=True)
    torch.manual_seed(3)
    one, two = compiled(x), compiled(x)
    torch.manual_seed(3)
    again = compiled(x)
    assert torch.equal(one, again) and not torch.equal(one, two)
    (gradient,) = torch.autograd.grad(again.sum(), x)
    torch.testing.assert_close(gradient, again.detach())
    forward_results = (again != 0).double().mean()
    assert 0.34 < forward_results < 0.41 and torch.unique(again.detach()).tolist() == pytest.approx([0, 8 / 3])


def test_frozen_weights_are_not_frozen_in_training():
    model = nn.Linear(32, 32)
    compiled = torch.compile(model, backend="graphc", options={"weights": "frozen"})
    x = torch.randn(4, 32, requires_grad=True)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), model(x))
        result = torch.autograd.grad(compiled(x).square().sum(), x)
        torch.testing.assert_close(result, torch.autograd.grad(model(x).square().sum(), x), rtol=1e-4, atol=1e-4)
        with torch.no_grad():
            model.weight.data.mul_(2)


@pytest.fixture
def forward_results(monkeypatch: Any):
    """The results of forward passes, those that are kept for backward passes too."""
    cut, found = training.default_partition, []

    def recorded(*args: Any, **named: Any) -> Any:
        passes = cut(*args, **named)
        found.extend(passes[0].graph.output_node().args[0])
        return passes

    monkeypatch.setattr(training, "default_partition", recorded)
    return found


def test_a_backward_pass_keeps_nothing_that_it_does_not_read(forward_results: Any):
    x = torch.randn(1, 2, 6, 6, requires_grad=True)
    torch.compile(lambda x: torch.max_pool2d(x, 2).sum(), backend="graphc")(x).backward()
    assert (
        forward_results
        and torch.int64 not in [n.meta["val"].dtype for n in forward_results]
        and int(x.grad.sum()) == 18
    )


def test_a_backward_pass_keeps_no_views(forward_results: Any):
    def product(x: Any, w: Any) -> Any:
        y = torch.relu(x @ w.t().contiguous().view(4, 3).t().t())
        return (y.view(-1) * y.view(-1).detach()).sum() + w[0].sum() * w.sum()

    x, w = torch.randn(2, 4, requires_grad=True), torch.randn(3, 4, requires_grad=True)
    result = torch.autograd.grad(torch.compile(product, backend="graphc")(x, w), (x, w))
    torch.testing.assert_close(result, torch.autograd.grad(product(x, w), (x, w)))
    assert forward_results and not [n for n in forward_results if n.op == "call_function" and n.target.is_view]


def attention(x: Any, y: Any) -> Any:
    q, k, v = (x @ y).view(1, 2, 8, 48).chunk(3, dim=-1)
    return nn.functional.scaled_dot_product_attention(q, k, v).float().square().sum()


def mixed_attention(x: Any, y: Any) -> Any:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return attention(x, y)


def test_what_pytorch_computes_of_a_backward_pass_reads_all_that_it_keeps(monkeypatch: pytest.MonkeyPatch):
    find = fallback.find
    monkeypatch.setattr(fallback, "find", lambda target: None if "attention" in target else find(target))
    x, y = torch.randn(16, 32, requires_grad=True), torch.randn(32, 48)
    with pytest.warns(FallbackWarning, match="attention"):
        result = torch.autograd.grad(torch.compile(attention, backend="graphc")(x, y), x)
    torch.testing.assert_close(result, torch.autograd.grad(attention(x, y), x), rtol=1e-4, atol=1e-4)


def test_gradients_of_bfloat16_are_as_near_to_exact_ones_as_those_of_pytorch():
    torch.manual_seed(0)
    x, y = torch.randn(16, 32, requires_grad=True), torch.randn(32, 48)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        (result,) = torch.autograd.grad(torch.compile(mixed_attention, backend="graphc")(x, y), x)
    (exact,) = torch.autograd.grad(attention(x, y), x)
    (expected,) = torch.autograd.grad(mixed_attention(x, y), x)
    assert 0 < (result - exact).norm() < 1.2 * (expected - exact).norm()


@pytest.fixture
def recurrent():
    """Dynamo captures recurrent layers."""
    with torch._dynamo.config.patch(allow_rnn=True):
        yield


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrent_layers_are_native(kind: str, recurrent: None):
    model = getattr(nn, kind)(3, 4, bidirectional=True, batch_first=True)
    compiled = torch.compile(model, backend="graphc", fullgraph=True, options={"fallback": "error"})
    with torch.no_grad():
        x = torch.rand(2, 5, 3)
        torch.testing.assert_close(compiled(x), model(x))


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.filterwarnings("ignore::graphc.errors.FallbackWarning")
def test_a_recurrent_layer_is_trained(check: bool, recurrent: None):
    """With ``check`` PyTorch computes layers in training: its backward operator needs what its own kernel keeps."""
    model = nn.LSTM(3, 4)
    options = {"check": True} if check else {"fallback": "error"}
    compiled = torch.compile(model, backend="graphc", options=options)
    x = torch.rand(5, 2, 3, requires_grad=True)
    for _ in range(2):
        losses = [m(x)[0].square().sum() + m(x)[1][1].sum() for m in (compiled, model)]
        ours, theirs = (torch.autograd.grad(loss, [x, *model.parameters()]) for loss in losses)
        torch.testing.assert_close(ours, theirs)
