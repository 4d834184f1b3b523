"""Custom functions in both styles."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.autograd import Function, Variable, function, gradcheck, gradgradcheck, once_differentiable
from graphc.errors import ArgumentError, GradientError


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, g):
        (result,) = ctx.saved_tensors
        return g * result


class Linear(Function):
    @staticmethod
    def forward(ctx, x, weight, bias=None):
        ctx.save_for_backward(x, weight, bias)
        y = x @ weight.t()
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx, g):
        x, weight, _ = ctx.saved_tensors
        needs = ctx.needs_input_grad
        return (
            g @ weight if needs[0] else None,
            g.t() @ x if needs[1] else None,
            g.sum(0) if len(needs) > 2 and needs[2] else None,
        )


class AddConstant(Function):
    """The instance style: what is no tensor goes to ``__init__``."""

    def __init__(self, constant):
        self.constant = constant

    def forward(self, x):
        return x + self.constant

    def backward(self, g):
        return g


class Transpose(Function):
    def __init__(self, dim0, dim1):
        super().__init__()
        self.dims = dim0, dim1

    def forward(self, x):
        return x.transpose(*self.dims)

    def backward(self, g):
        return g.transpose(*self.dims)


class OldReLU(Function):
    def forward(self, x):
        self.save_for_backward(x)
        return x.clamp(min=0)

    def backward(self, g):
        (x,) = self.saved_tensors
        return g * (x > 0)


class OldLinear(Function):
    def forward(self, x, weight, bias=None):
        self.save_for_backward(x, weight, bias)
        y = x @ weight.t()
        return y if bias is None else y + bias

    def backward(self, g):
        x, weight, bias = self.saved_tensors
        return g @ weight, g.t() @ x, None if bias is None else g.sum(0), None


def doubles(*shape: int, seed: int = 0) -> graphc.Tensor:
    return graphc.from_numpy(np.random.default_rng(seed).standard_normal(shape)).requires_grad_()


def test_static_style():
    assert gradcheck(Exp.apply, doubles(3))
    assert gradgradcheck(Exp.apply, doubles(3))
    assert gradcheck(Linear.apply, (doubles(4, 3), doubles(2, 3, seed=1), doubles(2, seed=2)))
    assert Linear.apply(graphc.ones(1, 2), graphc.ones(1, 2)).tolist() == [[2]]


def test_instance_style():
    assert gradcheck(lambda x: AddConstant(3)(x), doubles(3))
    assert gradcheck(lambda x: Transpose(0, 1)(x) * 2, doubles(2, 3))
    assert gradcheck(lambda x: OldReLU()(x), doubles(3, 3))
    assert gradcheck(lambda *a: OldLinear()(*a), (doubles(4, 3), doubles(2, 3, seed=1), doubles(2, seed=2)))
    assert gradcheck(lambda *a: OldLinear()(*a), (doubles(4, 3), doubles(2, 3, seed=1)))
    assert "AddConstantBackward" in repr(AddConstant(1)(doubles(1)))


def test_an_instance_serves_one_call():
    f = AddConstant(1)
    f(doubles(1))
    with pytest.raises(GradientError, match="already called"):
        f(doubles(1))


def test_styles_are_not_mixed_up():
    with pytest.raises(ArgumentError, match=r"Exp\.apply\(tensor"):
        Exp()(doubles(1))
    with pytest.raises(ArgumentError, match="is not a static method"):
        AddConstant.apply(doubles(1))


def test_nothing_is_recorded_inside():
    class Look(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            assert not y.requires_grad
            return y

        @staticmethod
        def backward(ctx, g):
            assert not (g * 2).requires_grad
            return g * 2

    x = doubles(1)
    y = Look.apply(x)
    assert y.requires_grad and y.grad_fn.name() == "LookBackward"
    y.backward()
    assert x.grad.item() == 2
    with graphc.no_grad():
        assert not Look.apply(x).requires_grad
    assert not Look.apply(x.detach()).requires_grad


def test_setup_context():
    class Cube(Function):
        @staticmethod
        def forward(x):
            return x**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return 3 * ctx.saved_tensors[0] ** 2 * g

    assert gradcheck(Cube.apply, doubles(3))
    assert gradgradcheck(Cube.apply, doubles(3))


def test_several_results_and_missing_gradients():
    class Pair(Function):
        @staticmethod
        def forward(ctx, x, keep):
            ctx.keep = keep
            if not keep:
                ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            if ctx.keep:
                assert b.tolist() == [0, 0]
                return 2 * a + 3 * b, None
            assert b is None
            return 2 * a, None

    for keep in (True, False):
        x = doubles(2)
        first, _ = Pair.apply(x, keep)
        first.sum().backward()
        assert x.grad.tolist() == [2, 2]


def test_count_and_kind_of_gradients_are_checked():
    class Wrong(Function):
        result: object = ()

        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, g):
            return Wrong.result

    for result, message in [
        (graphc.ones(1), "returned 1 gradients, expected 2"),
        ((None, None, graphc.ones(1)), "returned 3 gradients, expected 2"),
        ((1.0, None), "returned a float as gradient 0"),
        ((graphc.ones(5), None), "gradient of shape \\[5\\] for operand 0 of shape \\[2\\]"),
    ]:
        Wrong.result = result
        with pytest.raises(GradientError, match=message):
            Wrong.apply(doubles(2), doubles(2)).sum().backward()
    Wrong.result = (graphc.ones(2, dtype=graphc.float64), None, None)
    x = doubles(2)
    Wrong.apply(x, doubles(2)).sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_results_that_are_operands_and_results_without_gradient():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            flag = x > 0
            ctx.mark_non_differentiable(flag)
            return x, flag

        @staticmethod
        def backward(ctx, g, _):
            return g * 7

    x = doubles(2)
    same, flag = Same.apply(x)
    assert same is not x and same.requires_grad and not flag.requires_grad
    same.sum().backward()
    assert x.grad.tolist() == [7, 7]


def test_writing_to_an_operand():
    class Increment(Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 4

    x = doubles(2)
    y = x * 2
    z = Increment.apply(y)
    assert z is y
    z.sum().backward()
    assert x.grad.tolist() == [8, 8]


def test_saved_tensors():
    x = doubles(2)
    y = Exp.apply(x)
    y.detach().add_(1)
    with pytest.raises(GradientError, match="saved by a custom function"):
        y.sum().backward()
    y = Exp.apply(x)
    y.sum().backward()
    with pytest.raises(GradientError, match="run backward once"):
        y.sum().backward()

    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(3)

    with pytest.raises(ArgumentError, match=r"keeps tensors and None, not int"):
        Bad.apply(x)


def test_missing_parts():
    class Empty(Function):
        pass

    class Forward(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    class Both(Forward):
        @staticmethod
        def backward(ctx, g):
            return g

        @staticmethod
        def vjp(ctx, g):
            return g

    with pytest.raises(NotImplementedError, match="must implement forward"):
        Empty.apply(doubles(1))
    with pytest.raises(NotImplementedError, match="must implement backward"):
        Forward.apply(doubles(1)).backward()
    with pytest.raises(GradientError, match="both backward and vjp"):
        Both.apply(doubles(1))


def test_once_differentiable():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    x = doubles(2)
    assert gradcheck(Square.apply, x)
    (g,) = graphc.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
    with pytest.raises(GradientError, match="differentiated twice"):
        (g * x).sum().backward()


def test_variable_wraps_a_tensor():
    t = graphc.ones(2)
    v = Variable(t, requires_grad=True)
    assert v.requires_grad and v.creator is None and np.shares_memory(v.detach().numpy(), t.numpy())
    assert not Variable(t, requires_grad=True, volatile=True).requires_grad


@pytest.mark.parametrize("shape", [(), (4,), (3, 2), (6,)])
def test_a_gradient_must_have_a_shape_that_the_operand_broadcasts_to(shape):
    class Odd(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return graphc.ones(shape)

    x = graphc.ones(2, 3, requires_grad=True)
    with pytest.raises(GradientError, match=r"returned a gradient of shape .* for operand 0"):
        Odd.apply(x).sum().backward()
    with pytest.raises(GradientError, match=r"returned a gradient of shape .* for operand 0"):
        graphc.trace(lambda x: Odd.apply(x), graphc.ones(2, 3))


def test_a_gradient_of_the_broadcast_shape_is_summed():
    class Spread(Function):
        @staticmethod
        def forward(ctx, x):
            return x.expand(4, 2, 3).clone()

        @staticmethod
        def backward(ctx, g):
            return g

    x = graphc.ones(2, 1, requires_grad=True)
    Spread.apply(x).sum().backward()
    assert x.grad.tolist() == [[12], [12]]


def test_the_known_path_has_what_users_name():
    assert graphc.autograd.function is function
    assert set(function.__all__) == {"Function", "once_differentiable"}


def test_every_tensor_is_a_variable():
    assert isinstance(graphc.ones(1), Variable) and not isinstance(1.0, Variable)
    assert type(Variable(graphc.ones(1))) is graphc.Tensor
