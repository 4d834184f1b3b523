"""Calls that a check has stopped: the error names the index and the line, and state is as it was before the call."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
import graphc.nn.functional as F
from graphc import nn
from graphc.errors import IndexRangeError
from graphc.models.model_file import load

x = gc.tensor
WHERE = r"out of range[\s\S]*test_refusals.py:\d+"

FAMILY = {
    "embedding": lambda a, i: F.embedding(i, a.reshape(3, 1)),
    "embedding_bag": lambda a, i: F.embedding_bag(i.reshape(1, 2), a.reshape(3, 1)),
    "one_hot": lambda a, i: F.one_hot(i, 3),
    "cross_entropy": lambda a, i: F.cross_entropy(a.expand(2, 3), i),
    "nll_loss": lambda a, i: F.nll_loss(a.expand(2, 3), i),
    "multi_margin_loss": lambda a, i: F.multi_margin_loss(a.expand(2, 3), i),
    "multilabel_margin_loss": lambda a, i: F.multilabel_margin_loss(a, F.pad(i, (0, 1))),
    "ctc_loss": lambda a, i: F.ctc_loss(a.expand(4, 1, 3), i.reshape(1, 2), [4], [2]),
    "indexing": lambda a, i: a[i],
    "indexing by two": lambda a, i: a.reshape(3, 1)[i, i * 0],
    "assignment": lambda a, i: a.index_put((i,), gc.ones(2)),
    "gather": lambda a, i: a.gather(0, i),
    "take_along_dim": lambda a, i: a.take_along_dim(i, 0),
    "take": lambda a, i: a.take(i),
    "index_select": lambda a, i: a.index_select(0, i),
    "index_add": lambda a, i: a.index_add(0, i, gc.ones(2)),
    "index_copy": lambda a, i: a.index_copy(0, i, gc.ones(2)),
    "index_fill": lambda a, i: a.index_fill(0, i, 2.0),
    "scatter": lambda a, i: a.scatter(0, i, 1.0),
    "scatter_add": lambda a, i: a.scatter_add(0, i, gc.ones(2)),
    "scatter_reduce": lambda a, i: a.scatter_reduce(0, i, gc.ones(2), "amax"),
    "scatter_reduce prod": lambda a, i: a.scatter_reduce(0, i, gc.ones(2), "prod"),
    "arithmetic": lambda a, i: a[i * 2 - 2],
    "vmap": lambda a, i: gc.vmap(lambda n: a[n.reshape(1)])(i),
    "scan": lambda a, i: gc.scan(lambda c, n: (c + a[n.reshape(1)], c), gc.zeros(1), i)[0],
}


@pytest.mark.parametrize("name", FAMILY)
def test_an_index_out_of_range_raises_eagerly_and_compiled(name):
    function = FAMILY[name]
    good = x([1, 2]) if name == "ctc_loss" else x([2, 1])
    compiled = gc.compile(function)
    expected = function(gc.rand(3), good)
    assert compiled(gc.rand(3), good).shape == expected.shape
    for wrong in (x([1, 3]), x([-4, 1])):
        with pytest.raises(IndexRangeError, match=r"\d \(at "):
            function(gc.rand(3), wrong)
        for _ in range(2):
            with pytest.raises(IndexRangeError, match=rf"\d \(at [\s\S]*{WHERE}"):
                compiled(gc.rand(3), wrong)
    assert compiled(gc.rand(3), good).shape == expected.shape


class Late(nn.Module):
    """An index that is known only when statistics have been computed."""

    def __init__(self):
        super().__init__()
        self.norm, self.rows, self.last = nn.BatchNorm1d(4), nn.Embedding(5, 4), nn.Linear(4, 3)

    def forward(self, v):
        h = self.norm(v)
        return self.last(h + self.rows((v.sum(1) + h.sum(1) * 0).long()))


def _state(model, optimizer):
    slots = [t for held in optimizer.state.values() for t in held.values()]
    return [t.detach().numpy().copy() for t in (*model.state_dict().values(), *slots)]


@pytest.mark.parametrize("wrong", ["label", "index behind a norm"])
@pytest.mark.parametrize("rule", ["SGD", "Adam"])
def test_a_step_that_is_stopped_has_changed_nothing(wrong, rule):
    model = Late()
    optimizer = getattr(gc.optim, rule)(model.parameters(), lr=0.1)
    step = gc.compile_step(model, F.cross_entropy, optimizer)
    v, y = gc.full((4, 4), 0.5), x([0, 1, 2, -100])
    step(v, y)
    before, count = _state(model, optimizer), optimizer.step_count
    given = (v, x([0, 1, 3, 2])) if wrong == "label" else (v + 1.0, y)
    for _ in range(3):
        with pytest.raises(IndexRangeError, match=WHERE):
            step(*given)
    for a, b in zip(before, _state(model, optimizer), strict=True):
        np.testing.assert_array_equal(a, b)
    assert optimizer.step_count == count
    step(v, y)
    assert optimizer.step_count == count + 1


def test_buffers_and_the_random_state_are_as_before(seeded=5):
    model = nn.Sequential(nn.Embedding(4, 6), nn.Flatten(), nn.BatchNorm1d(12), nn.Dropout(0.5))
    compiled = gc.compile(model)
    gc.manual_seed(seeded)
    compiled(x([[0, 1], [2, 3]]))
    expected = compiled(x([[0, 1], [2, 3]])).tolist()
    again = nn.Sequential(nn.Embedding(4, 6), nn.Flatten(), nn.BatchNorm1d(12), nn.Dropout(0.5))
    again.load_state_dict(model.state_dict())
    again[2].reset_running_stats()
    model[2].reset_running_stats()
    compiled(x([[0, 1], [2, 3]]))
    before = [b.numpy().copy() for b in model.buffers()]
    with pytest.raises(IndexRangeError):
        compiled(x([[0, 1], [2, 4]]))
    for a, b in zip(before, model.buffers(), strict=True):
        np.testing.assert_array_equal(a, b.numpy())
    assert len(expected) == 2


def test_gradients_are_not_touched_by_a_call_that_is_stopped():
    weight = gc.rand(5, 3, requires_grad=True)
    compiled = gc.compile(lambda w, i: F.embedding(i, w).sum())
    compiled(weight, x([0, 1])).backward()
    before = weight.grad.tolist()
    with pytest.raises(IndexRangeError, match=WHERE):
        compiled(weight, x([0, 5]))
    assert weight.grad.tolist() == before


def test_an_index_in_a_buffer_is_checked_in_each_call():
    class Positions(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("places", x([0, 1, 2]))
            self.rows = nn.Embedding(3, 2)

        def forward(self, y):
            return y + self.rows(self.places)

    model = Positions()
    for compiled in (gc.compile(model), gc.compile(model, freeze=True)):
        model.places.copy_(x([0, 1, 2]))
        with gc.no_grad():
            compiled(gc.zeros(3, 2))
            model.places[1] = 9
            with pytest.raises(IndexRangeError, match=r"embedding: index 9 \(at \[1\]\)"):
                compiled(gc.zeros(3, 2))


@pytest.mark.parametrize("native", [False, True])
def test_a_model_file_raises_too(tmp_path, native):
    gc.export(nn.Embedding(5, 2), x([0, 1]), path=tmp_path / "m.gcm", native=native)
    model = load(tmp_path / "m.gcm", trust=native)
    assert model(np.array([0, 4])).shape == (2, 2)
    for call in (lambda i: model(i), lambda i: model.run([i]), lambda i: model(i, out=np.empty((2, 2), np.float32))):
        with pytest.raises(IndexRangeError, match=rf"embedding: index 5 \(at \[1\]\) is {WHERE}"):
            call(np.array([0, 5]))
    assert model(np.array([0, 4])).shape == (2, 2)


def test_threads_stop_together(monkeypatch):
    monkeypatch.setenv("GRAPHC_THREADS", "2")
    model = nn.Sequential(nn.Linear(256, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = gc.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    step = gc.compile_step(model, F.cross_entropy, optimizer)
    v, y = gc.rand(256, 256), gc.randint(0, 10, (256,))
    step(v, y)
    before = _state(model, optimizer)
    y[17] = 10
    for _ in range(20):
        with pytest.raises(IndexRangeError, match=r"target 10 \(at \[17\]\)"):
            step(v, y)
    for a, b in zip(before, _state(model, optimizer), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_refusal_names_the_index_where_hooks_are_called():
    calls = []
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    for module in model:
        module.register_forward_hook(lambda _, i, o: calls.append(o.shape))
    step = gc.compile_step(model, F.cross_entropy, gc.optim.SGD(model.parameters(), lr=0.1))
    step(gc.randn(2, 3), x([0, 3]))
    assert len(calls) == 2
    before = model[0].weight.detach().numpy().copy()
    with pytest.raises(IndexRangeError, match=rf"target 4 \(at [\s\S]*{WHERE}"):
        step(gc.randn(2, 3), x([0, 4]))
    assert (model[0].weight.detach().numpy() == before).all()


def test_what_a_function_makes_is_checked_by_the_program():
    compiled = gc.compile(lambda a, i: a[gc.opaque(lambda i: i + 2)(i)])
    a = gc.rand(5)
    np.testing.assert_array_equal(compiled(a, x([1, 2])).numpy(), a.numpy()[[3, 4]])
    with pytest.raises(IndexRangeError, match="out of range"):
        compiled(a, x([1, 3]))


def test_the_error_names_the_line_that_called_beside_the_traced_one():
    model = nn.Linear(3, 4)
    step = gc.compile_step(model, F.cross_entropy, gc.optim.SGD(model.parameters(), lr=0.1))
    step(gc.ones(2, 3), x([0, 1]))  # traces
    with pytest.raises(IndexRangeError) as found:
        step(gc.ones(2, 3), x([0, 7]))  # calls
    lines = {label: text for label, text in (line.split(maxsplit=1) for line in str(found.value).splitlines()[1:])}
    assert lines["called"].endswith("# calls") and lines["traced"].endswith("# traces") and "from" not in lines
