"""``torch.compile(model, backend="graphc")``: models of PyTorch give what they give eagerly."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
nn: Any = torch.nn if torch else None


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Linear(8, 4)
        self.words = nn.Embedding(10, 4)

    def forward(self, x: Any, i: Any) -> dict[str, Any]:
        y = torch.relu(self.norm(self.first(x))).mean((2, 3))
        y = self.last(y) + self.words(i)
        return {"found": y.view(-1), "wide": y.to(torch.float64), "none": None}


@pytest.fixture(autouse=True)
def afresh():
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(0)


def compare(model: Any, *args: Any, **options: Any) -> Any:
    compiled = torch.compile(model, backend="graphc", **options)
    with torch.no_grad():
        expected, found = model(*args), compiled(*args)
    torch.testing.assert_close(found, expected)
    return compiled


def test_a_model_computes_what_it_computes_eagerly():
    compare(Net().eval(), torch.randn(2, 3, 8, 8), torch.tensor([1, 2]))


def test_sizes_that_change_are_named_dimensions_of_one_program():
    compiled = torch.compile(Net().eval(), backend="graphc", dynamic=True)
    model = compiled._orig_mod
    with torch.no_grad():
        for count in (2, 5, 9, 3):
            args = torch.randn(count, 3, 8, 8), torch.randint(0, 10, (count,))
            torch.testing.assert_close(compiled(*args), model(*args))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


def test_results_lie_in_memory_as_those_of_pytorch_do():
    x = torch.randn(2, 3, 4, 5)
    found = torch.compile(lambda x: x.permute(0, 2, 3, 1) * 2, backend="graphc")(x)
    assert found.stride() == (x.permute(0, 2, 3, 1) * 2).stride()


def test_what_is_written_to_arguments_is_seen_outside():
    def step(x: Any, y: Any) -> Any:
        x[1:].add_(y)
        return x.sum()

    x, other = torch.ones(3), torch.ones(3)
    found = torch.compile(step, backend="graphc")(x, 2)
    assert found == step(other, 2) and x.tolist() == other.tolist()


@pytest.mark.parametrize("write", ["add_", "data", "numpy"])
def test_every_write_to_a_weight_is_found(write: str):
    model = nn.Linear(64, 64).eval()
    x = torch.randn(8, 64)
    compiled = compare(model, x)
    with torch.no_grad():
        if write == "add_":
            model.weight.add_(1)
        elif write == "data":
            model.weight.data.mul_(2)
        else:
            model.weight.detach().numpy()[3] = 5
        torch.testing.assert_close(compiled(x), model(x))


def test_options_are_checked():
    with pytest.raises(Exception, match="no option 'wieghts'"):
        compare(nn.Linear(2, 2), torch.ones(1, 2), options={"wieghts": "live"})
    with pytest.raises(Exception, match="'live', 'frozen'"):
        compare(nn.Linear(2, 2), torch.ones(1, 2), options={"weights": "no"})
