"""Whole numbers among the arguments of compiled functions as named dimensions."""

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError
from tests.calls.sized import ones, same

PLACES = 40
POS = gc.Dim("pos", 0, PLACES - 1, hint=8)
F = nn.functional


class Layer(nn.Module):
    """Attends to the keys and values up to a place, where it writes its own."""

    def __init__(self):
        super().__init__()
        self.parts, self.places = nn.Linear(8, 24), nn.Embedding(PLACES, 8)
        self.register_buffer("keys", gc.zeros(1, 2, PLACES, 4))
        self.register_buffer("values", gc.zeros(1, 2, PLACES, 4))

    def forward(self, x, pos: int):
        x = x + self.places(gc.arange(pos, pos + 1))
        query, key, value = self.parts(x).view(1, 1, 3, 2, 4).permute(2, 0, 3, 1, 4)
        self.keys[:, :, pos] = key[:, :, 0]
        self.values.index_copy_(2, gc.tensor([pos]), value)
        found = F.scaled_dot_product_attention(query, self.keys[:, :, : pos + 1], self.values[:, :, : pos + 1])
        return found.reshape(1, 8)


def pair():
    """Two equal layers."""
    layers = Layer().eval(), Layer().eval()
    layers[1].load_state_dict(layers[0].state_dict())
    return layers


def test_one_program_reads_what_each_place_has_seen(traces):
    layer, eager = pair()
    compiled = gc.compile(layer, dims={"pos": POS})
    inputs = gc.randn(11, 1, 8)  # before the traces that count: draws may be compiled, too
    traces.clear()
    with gc.no_grad():
        for x, pos in zip(inputs, (0, 1, 2, 15, 16, 17, 7, 31, 32, 33, PLACES - 1), strict=True):
            same(compiled(x, pos), eager(x, pos))
            same(layer.keys, eager.keys)
    assert len(traces) == 1 and len(compiled.variants) == 1


FORMS = {
    "slices": lambda x, pos: x[:, :pos].sum(-1) + x[:, pos:].sum(-1),
    "results as long as the number": lambda x, pos: x[:, :pos] * 2,
    "from behind": lambda x, pos: x[:, -pos - 1 :],
    "element": lambda x, pos: x[:, pos] + x[0, pos],
    "assignment": lambda x, pos: put(x.clone(), pos),
    "mask": lambda x, pos: x.masked_fill(gc.arange(PLACES) > pos, float("-inf")).softmax(-1),
    "softmax": lambda x, pos: x[:, : pos + 1].softmax(-1),
    "softmax of nothing": lambda x, pos: x[:, :pos].softmax(-1),
    "logsumexp": lambda x, pos: x[:, : pos + 1].logsumexp(-1),
    "argmax": lambda x, pos: x[:, : pos + 1].argmax(-1),
    "mean of nothing": lambda x, pos: x[:, :pos].mean(-1),
    "layer norm": lambda x, pos: F.layer_norm(x[:, : pos + 1], (pos + 1,)),
    "numbers": lambda x, pos: x * pos + pos / 2 + (pos + 1) ** -0.5,
    "tensors": lambda x, pos: x + gc.tensor(pos) + gc.tensor([pos]) + gc.full((1,), pos),
    "concatenation": lambda x, pos: gc.cat([x[:, :pos], x[:, pos + 1 :]], 1),
    "product": lambda x, pos: x[:, :pos] @ x[:, :pos].T,
    "running sum": lambda x, pos: x[:, :pos].cumsum(-1),
    "roll": lambda x, pos: gc.roll(x, pos, 1),
    "padding": lambda x, pos: F.pad(x, (pos, 0)),
    "triangle": lambda x, pos: x.tril(pos),
    "one hot": lambda x, pos: x + F.one_hot(gc.tensor(pos), PLACES),
}


def put(x, pos):
    x[:, pos] = 7.0
    x[:, :pos] += 1.0
    return x


@pytest.mark.parametrize("form", FORMS)
def test_numbers_that_are_sizes_give_what_eager_mode_does(form):
    function = FORMS[form]
    compiled = gc.compile(lambda x, pos: function(x, pos), dims={"pos": POS})
    for pos in (8, 0, 1, 16, PLACES - 1):
        x = gc.randn(3, PLACES)
        found, wanted = compiled(x, pos), function(x, pos)
        assert found.shape == wanted.shape and found.dtype is wanted.dtype
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)
    assert len(compiled.variants) <= (2 if "nothing" in form else 1)


@pytest.mark.parametrize(
    ("pos", "message"),
    [
        (PLACES, "pos is 40, outside of 0..39 (the number pos)"),
        (-1, "pos is -1, outside of 0..39 (the number pos)"),
        (True, "dims names dimensions of pos, which is neither tensor nor int but True"),
        (2.0, "dims names dimensions of pos, which is neither tensor nor int but 2.0"),
        (1 << 70, "cannot be the size of a dimension"),
    ],
)
def test_what_is_no_number_in_the_range_is_refused(pos, message):
    compiled = gc.compile(lambda x, pos: x[:, :pos], dims={"pos": POS})
    same(compiled(ones(2, PLACES), 3), ones(2, 3))
    with pytest.raises(ArgumentError) as caught:
        compiled(ones(2, PLACES), pos)
    assert message in str(caught.value)


def test_numbers_are_given_in_all_ways(traces):
    dims = {"state": {"pos": POS}, "last": POS + 1, "x": (None, gc.Dim("width", 1, 64))}
    compiled = gc.compile(lambda x, *, state, last: x[:, state["pos"] : last], dims=dims)
    for pos in (3, np.int64(0), 20):
        same(compiled(ones(2, 50), state={"pos": pos}, last=pos + 1), ones(2, 1))
    same(compiled(ones(2, 30), state={"pos": 4}, last=np.int8(5)), ones(2, 1))
    assert len(traces) == 1
    with pytest.raises(ArgumentError, match="the number last is 7, not 5 = pos \\+ 1"):
        compiled(ones(2, 30), state={"pos": 4}, last=7)


def test_what_is_returned_besides_tensors_is_that_of_the_call(traces):
    compiled = gc.compile(lambda x, pos: (x[:, :pos], pos + 1, pos / 2), dims={"pos": POS})
    for pos in (3, 5):
        found = compiled(ones(2, PLACES), pos)
        assert found[0].shape == (2, pos) and found[1:] == (pos + 1, pos / 2)
    assert len(traces) == 1


def test_a_branch_on_a_number_is_a_guard_with_its_line(traces):
    compiled = gc.compile(lambda x, pos: x[:, :pos] * 2 if pos > 4 else x[:, :pos], dims={"pos": POS})
    for pos in (1, 4, 5, 30, 2):
        same(compiled(ones(2, PLACES), pos), ones(2, pos) * (2 if pos > 4 else 1))
    assert len(traces) == 2


def test_common_numbers_have_programs_of_their_own(traces):
    compiled = gc.compile(lambda x, pos: x[:, :pos], dims={"pos": gc.Dim("pos", 0, 30, common=(5,))})
    for pos in (4, 5, 6, 5):
        same(compiled(ones(2, PLACES), pos), ones(2, pos))
    assert len(traces) == 1 and len(compiled.variants) == 2


def test_plans_are_those_of_the_number():
    compiled = gc.compile(lambda x, pos: (x[:, :pos].softmax(-1) @ x[:, :pos].T).softmax(-1), dims={"pos": POS})
    assert compiled.plan(ones(20, PLACES), 30).arena > compiled.plan(ones(20, PLACES), 2).arena > 0


def test_gradients_flow_through_what_a_number_has_chosen(traces):
    weight = gc.randn(PLACES, 4, requires_grad=True)
    compiled = gc.compile(lambda x, pos: (x[:, :pos] @ weight[:pos]).tanh().sum(), dims={"pos": POS})
    for pos in (3, 1, 0, 17):
        x = gc.randn(3, PLACES, requires_grad=True)
        grads = []
        for function in (compiled, lambda x, pos: (x[:, :pos] @ weight[:pos]).tanh().sum()):
            x.grad = weight.grad = None
            function(x, pos).backward()
            grads.append((x.grad, weight.grad))
        for a, b in zip(*grads, strict=True):
            same(a, b)


def test_gradients_need_no_shape_that_tells_the_number(traces):
    weight = gc.randn(PLACES, requires_grad=True)
    compiled = gc.compile(lambda x, pos: (x[:, pos] * weight[pos]).sum(), dims={"pos": POS})
    for pos in (3, 0, PLACES - 1):
        x = gc.randn(3, PLACES, requires_grad=True)
        weight.grad = None
        compiled(x, pos).backward()
        same(weight.grad[pos], x[:, pos].sum())
        assert int((weight.grad != 0).sum()) == 1 and int((x.grad != 0).sum()) == 3
    assert len(traces) == 1 and len(compiled.variants) == 1


def test_gradients_need_no_input_that_tells_a_shape():
    compiled = gc.compile(lambda x: (x * 2).sum(), dims={"x": (gc.Dim("n", 1, 9),)})
    for n in (3, 1, 9):
        x = gc.randn(n, requires_grad=True)
        compiled(x).backward()
        same(x.grad, gc.full((n,), 2.0))


@pytest.mark.parametrize("options", [{}, {"freeze": True}, {"precision": "bf16"}])
@pytest.mark.parametrize("form", ["element", "sum", "rows", "columns"])
def test_what_is_made_of_weights_by_a_number_is_made_in_each_call(form, options):
    weight = nn.Parameter(gc.randn(16, 16))
    function = {
        "element": lambda x, pos: x + (weight * 2)[pos],
        "sum": lambda x, pos: x + (weight * 2)[:pos].sum(0),
        "rows": lambda x, pos: F.linear(x, weight[: pos + 1]),
        "columns": lambda x, pos: x.repeat(20, 1) @ weight[:, : pos + 1],
    }[form]
    compiled = gc.compile(function, dims={"pos": gc.Dim("pos", 0, 15, hint=8)}, **options)
    with gc.no_grad():
        for pos in (3, 0, 15, 1):
            x = gc.randn(1, 16)
            near = 0.1 if "precision" in options else 1e-4
            np.testing.assert_allclose(compiled(x, pos).numpy(), function(x, pos).numpy(), rtol=near, atol=near)
    assert len(compiled.variants) == 1


def test_a_part_of_a_constant_is_packed_in_each_call():
    table = gc.randn(16, 8)

    def function(x, pos):
        keys = table[None, None].expand(1, 3, 16, 8)[:, :, : pos + 1]
        return F.scaled_dot_product_attention(x[None, :, None, :8], keys, keys)

    compiled = gc.compile(lambda x, pos: function(x, pos), dims={"pos": gc.Dim("pos", 0, 15, hint=8)})
    for pos in (3, 0, 15):
        x = gc.randn(3, 16)
        same(compiled(x, pos), function(x, pos))
    assert len(compiled.variants) == 1


def test_calls_of_other_numbers_are_native(monkeypatch):
    compiled = gc.compile(lambda x, pos: x[:, : pos + 1].sum(-1), dims={"pos": POS})
    x = gc.randn(3, PLACES)
    compiled(x, 3), compiled(x, 4)
    monkeypatch.setattr(type(compiled), "_find_and_run", lambda *_: pytest.fail("a call went through Python"))
    for pos in (0, 1, PLACES - 1, 7):
        same(compiled(x, pos), x[:, : pos + 1].sum(-1))
