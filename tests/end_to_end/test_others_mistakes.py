"""Programs of the kinds that other compilers got wrong without a word: compiled they are as in eager mode, or raise."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError, GradientError, GraphcError, TraceError
from graphc.nn import functional as F
from tests.end_to_end.eager_and_compiled import Program, Wrap, compare, leaf, numbers, seen

EQUAL: list[Program] = []
REFUSED: list[tuple[Program, type[GraphcError], str]] = []


def equal(program: Program) -> Program:
    """Compiled, the program sees what it sees in eager mode."""
    EQUAL.append(program)
    return program


def refused(error: type[GraphcError], text: str) -> Callable[[Program], Program]:
    """Compiled, the program raises."""

    def note(program: Program) -> Program:
        REFUSED.append((program, error, text))
        return program

    return note


# ---- writes and aliases


class Doubled(gc.autograd.Function):
    """Writes to a copy in forward and to the gradient in backward."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.clone()
        y.mul_(2)
        ctx.save_for_backward(y)
        return y + 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        g = g.clone()
        g.mul_(y)
        return g


@equal
def a_custom_function_writes_in_place(wrap: Wrap) -> Iterator[Any]:
    x = leaf(5)
    y = wrap(lambda x: Doubled.apply(x) * 3)(x)
    y.sum().backward()
    yield from (y, x.grad)


@equal
def a_view_is_written_to_and_its_base_is_read(wrap: Wrap) -> Iterator[Any]:
    def function(x: Any) -> Any:
        base = x * 1
        base.view(-1)[1::2].mul_(3)
        base.t()[0] += 1
        return base.sum(0) * base[0]

    x = leaf(4, 3)
    y = wrap(function)(x)
    y.sum().backward()
    yield from (y, x.grad)


@equal
def a_value_is_read_before_and_after_a_write(wrap: Wrap) -> Iterator[Any]:
    def function(x: Any) -> Any:
        base = x.clone()
        before = base[1:] * 2
        base[2:] = -5
        return before, base * 1, base.argmin(), base.min()

    yield from wrap(function)(numbers(6))


@equal
def repeated_indices_are_read_and_written(wrap: Wrap) -> Iterator[Any]:
    def function(x: Any, i: Any) -> Any:
        y = x.clone()
        y[i] += y[i]
        return y

    yield wrap(function)(numbers(3, 2), gc.tensor([[0, 0], [2, 0]]))


@equal
def repeated_indices_add_their_gradients(wrap: Wrap) -> Iterator[Any]:
    x = leaf(4, 3)
    y = wrap(lambda x, i: gc.stack([x[..., k] for k in range(3)], -1).index_select(0, i) ** 2)(
        x, gc.tensor([1, 1, 3, 1])
    )
    y.sum().backward()
    yield from (y, x.grad)


@equal
def dropout_that_does_nothing_is_written_to(wrap: Wrap) -> Iterator[Any]:
    def function(x: Any) -> Any:
        base = x * 1
        same = F.dropout(base, 0.5, training=False)
        same += same
        return base, same

    yield from wrap(function)(numbers(2, 2))


@equal
def a_detached_tensor_shares_memory(wrap: Wrap) -> Iterator[Any]:
    def function(x: Any) -> Any:
        base = x * 2
        shared = base.detach()
        shared[0] = 7
        return base * 1, shared

    x = numbers(3)
    yield from wrap(function)(x)


@equal
def one_tensor_is_given_twice_after_two_were(wrap: Wrap) -> Iterator[Any]:
    function = wrap(lambda x, y: (x * 2).add_(y) + (y if x is y else 0))
    x, y = numbers(3), numbers(3) + 1
    yield from (function(x, y), function(x, x), function(x, y))


@equal
def arguments_overlap_in_memory(wrap: Wrap) -> Iterator[Any]:
    function = wrap(lambda x, y: x * 2 + y)
    base = numbers(8)
    yield function(base[:4].clone(), base[2:6].clone())
    yield function(base[:4], base[2:6])


@equal
def an_argument_that_is_given_twice_is_written_to(wrap: Wrap) -> Iterator[Any]:
    function = wrap(lambda x, y: x.mul_(2) + y)
    yield function(numbers(4), numbers(4))
    x = numbers(4)
    yield function(x, x)


@refused(ArgumentError, "shares")
def an_argument_is_written_to_whose_memory_another_one_shares(wrap: Wrap) -> Iterator[Any]:
    function = wrap(lambda x, y: x.mul_(2) + y)
    base = numbers(8)
    yield function(base[::2], base[1::2])
    yield function(base[:4], base[2:6])


@refused(GradientError, "modified by an in")
def an_operand_of_a_product_is_written_to_before_backward(wrap: Wrap) -> Iterator[Any]:
    x, w = numbers(2, 3), leaf(3, 3)
    y = wrap(lambda x, w: x @ w)(x, w)
    x.add_(1)
    y.sum().backward()
    yield w.grad


@equal
def gradients_of_tied_weights_count_once_in_their_norm(wrap: Wrap) -> Iterator[Any]:
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    with gc.no_grad():
        for p in first.parameters():
            p.copy_(numbers(*p.shape))
    second.weight = first.weight
    net = nn.Sequential(first, nn.Tanh(), second)
    wrap(net)(numbers(4, 3)).square().sum().backward()
    yield nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    yield from (p.grad for p in net.parameters())


class SharedScale(nn.Module):
    """Two norms with one scale."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.LayerNorm(5), nn.LayerNorm(5)
        self.b.weight = self.a.weight

    def forward(self, x: Any) -> Any:
        return self.b(gc.relu(self.a(x)) + x)


@equal
def two_norms_share_a_scale(wrap: Wrap) -> Iterator[Any]:
    net, x = SharedScale(), leaf(4, 5)
    y = wrap(net)(x)
    (y * numbers(4, 5)).sum().backward()
    yield from (y, x.grad, *(p.grad for p in net.parameters()))


@equal
def weights_are_untied_after_the_first_call(wrap: Wrap) -> Iterator[Any]:
    net = SharedScale()
    function = wrap(net)
    yield function(numbers(4, 5))
    net.b.weight = nn.Parameter(gc.full((5,), 3.0))
    yield function(numbers(4, 5))


@equal
def a_gradient_is_taken_inside_and_written_to(wrap: Wrap) -> Iterator[Any]:
    def function(x: Any) -> Any:
        g = gc.grad(lambda z: (z**3).sum())(x)
        g.mul_(0.5)
        g += x
        return g

    yield wrap(function)(numbers(4))


@equal
def what_a_gradient_needs_is_kept_when_a_copy_is_written_to(wrap: Wrap) -> Iterator[Any]:
    def function(x: Any) -> Any:
        z = x * 2
        y = z.clone()
        y.add_(1).mul_(3)
        return (y * z).sum()

    x = leaf(5)
    wrap(function)(x).backward()
    yield x.grad


# ---- values that Python asks for


@refused(TraceError, "item")
def a_loop_asks_for_values(wrap: Wrap) -> Iterator[Any]:
    def function(x: Any) -> Any:
        total = x * 0
        while total.sum().item() < 3:
            total = total + x.abs() + 0.5
        return total

    yield wrap(function)(numbers(3))


@refused(TraceError, "bool|values|Python")
def a_branch_depends_on_a_value(wrap: Wrap) -> Iterator[Any]:
    yield wrap(lambda x: x * 2 if x.sum() > 0 else x - 1)(numbers(3))


@equal
def an_unrolled_loop_carries_values(wrap: Wrap) -> Iterator[Any]:
    def function(x: Any) -> Any:
        state, found = gc.zeros(3), []
        for i in range(6):
            state = gc.where(x[i] > 0, state + x[i], -state)
            found.append(state.max())
        return gc.stack(found), state

    yield from wrap(function)(numbers(6, 3))


@equal
def numbers_of_other_types_and_signs_are_other_numbers(wrap: Wrap) -> Iterator[Any]:
    function = wrap(lambda x, a: x / a)
    for a in (0.0, -0.0, 1, True, 1.0, 2):
        yield function(gc.ones(2), a)
    whole = wrap(lambda x, a: x * a)
    for a in (1, True, 1.0, 2, 2.5):
        yield whole(gc.tensor([3, 4]), a)


@equal
def lists_and_dictionaries_change_between_calls(wrap: Wrap) -> Iterator[Any]:
    function = wrap(lambda x, parts, named: x * sum(parts) + named["a"] - named["b"])
    parts, named = [1.0, 2.0], {"a": numbers(2), "b": gc.ones(2)}
    yield function(gc.ones(2), parts, named)
    parts.append(4.0)
    named["a"], named["b"] = named["b"], named["a"]
    yield function(gc.ones(2), parts, named)
    yield function(gc.ones(2), parts, {"b": gc.ones(2) * 3, "a": gc.ones(2)})


# ---- modes


@equal
def norms_go_from_training_to_evaluation_and_back(wrap: Wrap) -> Iterator[Any]:
    net = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5), nn.BatchNorm1d(3, momentum=None))
    function = wrap(net)
    for training in (True, False, True, False):
        net.train(training)
        yield function(numbers(6, 3))
        yield from net.state_dict().values()


@equal
def statistics_are_those_of_every_call(wrap: Wrap) -> Iterator[Any]:
    norm = nn.BatchNorm1d(2)
    function = wrap(lambda x: norm(norm(x)))
    for i in range(3):
        yield function(numbers(5, 2) * (i + 1))
    yield from norm.buffers()


@equal
def a_part_is_computed_without_gradients(wrap: Wrap) -> Iterator[Any]:
    def function(x: Any) -> Any:
        with gc.no_grad():
            scale = x.exp()
            with gc.enable_grad():
                inner = x * 3
        return (x * scale + inner).sum()

    x = leaf(4)
    wrap(function)(x).backward()
    yield x.grad


@equal
def calls_alternate_with_and_without_gradients(wrap: Wrap) -> Iterator[Any]:
    net = nn.Linear(3, 2)
    with gc.no_grad():
        net.weight.copy_(numbers(2, 3))
        net.bias.zero_()
    function, x = wrap(net), numbers(4, 3)
    for _ in range(2):
        with gc.no_grad():
            yield function(x).requires_grad
        y = function(x)
        yield y.requires_grad
        y.sum().backward()
        yield net.weight.grad


@equal
def a_parameter_is_frozen_between_calls(wrap: Wrap) -> Iterator[Any]:
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    with gc.no_grad():
        for p in net.parameters():
            p.copy_(numbers(*p.shape))
    function = wrap(net)
    function(numbers(2, 3)).sum().backward()
    net.zero_grad()
    net[0].weight.requires_grad_(False)
    function(numbers(2, 3)).sum().backward()
    yield from (p.grad for p in net.parameters())


@equal
def gradients_add_up_over_calls(wrap: Wrap) -> Iterator[Any]:
    x, function = leaf(3), wrap(lambda x, y: (x * y).sum())
    for i in range(3):
        function(x, gc.ones(3) * i).backward()
    yield x.grad


@equal
def a_gradient_is_differentiated_again(wrap: Wrap) -> Iterator[Any]:
    x = leaf(3)
    (g,) = gc.autograd.grad(wrap(lambda x: (x**3).sum())(x), [x], create_graph=True)
    g.sum().backward()
    yield x.grad


# ---- random numbers


@equal
def dropouts_draw_in_the_order_of_the_program(wrap: Wrap) -> Iterator[Any]:
    def function(x: Any) -> Any:
        late = F.dropout(x, 0.5) * 2
        early = F.dropout(x, 0.3) + 1
        unused = F.dropout(x, 0.5)
        return early, late, F.dropout(x, 0.1), unused.shape[0]

    for _ in range(2):
        yield from wrap(function)(gc.ones(40))[:3]


@equal
def a_seed_is_set_before_the_first_call_and_between_calls(wrap: Wrap) -> Iterator[Any]:
    function = wrap(lambda x: F.dropout(x, 0.5) + gc.rand(30))
    gc.manual_seed(11)
    yield from (function(gc.ones(30)), function(gc.ones(30)))
    gc.manual_seed(11)
    yield from (function(gc.ones(30)), gc.rand(3), function(gc.ones(30)))


@equal
def a_mask_of_dropout_is_that_of_its_gradient(wrap: Wrap) -> Iterator[Any]:
    x = leaf(50)
    y = wrap(lambda x: F.dropout(x, 0.5))(x)
    y.sum().backward()
    yield from (y, x.grad)


# ---- numbers


@equal
def tails_of_vectors_do_not_count(wrap: Wrap) -> Iterator[Any]:
    for extent in (1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 65):
        x = -numbers(3, extent).abs() - 1
        yield from wrap(
            lambda x: (x.max(), x.prod(1), x.argmax(1), gc.softmax(x, 1), x.amin(0), x.all(), (x < 0).sum())
        )(x)


@equal
def infinities_and_not_a_number_pass(wrap: Wrap) -> Iterator[Any]:
    x = gc.tensor([[1.0, math.nan, 3.0], [-math.inf, -math.inf, -math.inf], [math.inf, 0.0, -0.0]])

    def function(x: Any) -> Any:
        return (
            x.max(1)[0],
            x.argmax(1),
            gc.softmax(x, 1),
            x.clamp(0, 2),
            gc.logsumexp(x, 1),
            gc.where(x > 0, x, 0.0),
            gc.maximum(x, x.flip(1)),
            x.sort(1)[0],
            x * 0,
            gc.sign(x),
        )

    yield from wrap(function)(x)


@equal
def integers_wrap_around(wrap: Wrap) -> Iterator[Any]:
    x = gc.tensor([0, 1, 9, 200, 255], dtype=gc.uint8)
    y = gc.tensor([-128, -1, 0, 127], dtype=gc.int8)
    yield from wrap(lambda x, y: (gc.abs(-x), -x, x * 3 - x, x + 100, gc.abs(y), -y, y * y, x.sum(), y.sum()))(x, y)


@equal
def an_empty_batch_has_gradients(wrap: Wrap) -> Iterator[Any]:
    net = nn.Linear(3, 2)
    x = gc.zeros(0, 3).requires_grad_()
    y = wrap(net)(x)
    y.sum().backward()
    yield from (y, x.grad, net.weight.grad)


@equal
def a_branch_that_is_not_taken_gives_no_gradient_by_itself(wrap: Wrap) -> Iterator[Any]:
    x = gc.tensor([-1.0, 0.0, 2.0]).requires_grad_()
    wrap(lambda x: gc.where(x > 0, gc.sqrt(x), x * 2).sum())(x).backward()
    yield x.grad


# ---- copies and threads of control


@equal
def a_copy_of_a_model_has_its_own_weights(wrap: Wrap) -> Iterator[Any]:
    net = nn.Linear(3, 2)
    with gc.no_grad():
        net.weight.copy_(numbers(2, 3))
        net.bias.zero_()
    function = wrap(net)
    yield function(gc.ones(1, 3))
    other = copy.deepcopy(net)
    with gc.no_grad():
        other.weight.zero_()
    yield from (function(gc.ones(1, 3)), wrap(other)(gc.ones(1, 3)))


@equal
def a_call_that_raises_leaves_no_trace(wrap: Wrap) -> Iterator[Any]:
    norm = nn.BatchNorm1d(3)
    function = wrap(lambda x, y: norm(x) @ y)
    yield function(numbers(4, 3), numbers(3, 2))
    with pytest.raises(GraphcError):
        function(numbers(4, 3), numbers(4, 2))
    yield function(numbers(4, 3), numbers(3, 2))


@pytest.mark.parametrize("program", EQUAL, ids=lambda p: p.__name__)
def test_compiled_as_eager_where(program: Program):
    compare(seen(program, gc.compile), seen(program, lambda f: f))


@pytest.mark.parametrize(("program", "error", "text"), REFUSED, ids=lambda p: getattr(p, "__name__", ""))
def test_compiled_raises_where(program: Program, error: type[GraphcError], text: str):
    with pytest.raises(error, match=text):
        seen(program, gc.compile)
