"""Wrong calls: ``except`` with the class that PyTorch raises also catches what graphc raises."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.compare import cases, check_error, normal, truth, whole


def _used_after_unsqueeze(t, x):
    y = x * 1
    z = (y * y).sum()
    y.unsqueeze_(0)
    z.backward()


X, CUBE, I5, M35 = normal(3, 5), normal(2, 3, 4), whole(3, 5), whole(3, 3, 5)


@pytest.mark.parametrize(
    "case",
    cases(
        ("shapes that do not broadcast", lambda t, x, y: x + y, (X, normal(4))),
        ("matmul", lambda t, x, y: x @ y, (X, normal(3, 5, seed=1))),
        ("matmul of a scalar", lambda t, x, y: t.matmul(x, y), (X, normal())),
        ("mm of a batch", lambda t, x, y: t.mm(x, y), (CUBE, X)),
        ("bmm of matrices", lambda t, x, y: t.bmm(x, y), (X, X)),
        ("dot of matrices", lambda t, x: t.dot(x, x), (X,)),
        ("dimension out of range", lambda t, x: x.sum(2), (X,)),
        ("negative dimension out of range", lambda t, x: x.mean(-3), (X,)),
        ("dimension twice", lambda t, x: x.sum((0, 0)), (X,)),
        ("reshape", lambda t, x: x.reshape(4, 4), (X,)),
        ("two unknown sizes", lambda t, x: x.reshape(-1, -1), (X,)),
        ("view of a transpose", lambda t, x: x.contiguous().t().view(15), (X,)),
        ("permute", lambda t, x: x.permute(0, 0), (X,)),
        ("permute of too few", lambda t, x: x.permute(0), (X,)),
        ("expand", lambda t, x: x.expand(3, 6), (X,)),
        ("unsqueeze_ of a leaf", lambda t, x: x.unsqueeze_(0), (X,)),
        ("transpose_ out of range", lambda t, x: (x * 1).transpose_(0, 2), (X,)),
        ("as_strided out of range", lambda t, x: x.clone().as_strided((9,), (2,)), (X,)),
        ("as_strided backwards", lambda t, x: x.clone().as_strided((2,), (-1,), 3), (X,)),
        ("used after unsqueeze_", _used_after_unsqueeze, (X,)),
        ("squeeze", lambda t, x: x.squeeze(4), (X,)),
        ("unsqueeze", lambda t, x: x.unsqueeze(5), (X,)),
        ("cat of different shapes", lambda t, x, y: t.cat([x, y]), (X, normal(3, 4))),
        ("cat of ranks", lambda t, x, y: t.cat([x, y]), (X, CUBE)),
        ("stack of different shapes", lambda t, x, y: t.stack([x, y]), (X, normal(3, 4))),
        ("split sizes", lambda t, x: x.split([1, 1], 1), (X,)),
        ("chunk of none", lambda t, x: x.chunk(0), (X,)),
        ("narrow", lambda t, x: x.narrow(1, 4, 3), (X,)),
        ("narrow dimension", lambda t, x: x.narrow(2, 0, 1), (X,)),
        ("index", lambda t, x: x[3], (X,)),
        ("negative index", lambda t, x: x[0, -6], (X,)),
        ("too many indices", lambda t, x: x[0, 0, 0], (X,)),
        ("float index", lambda t, x: x[x[0]], (X,)),
        ("text index", lambda t, x: x["a"], (X,)),
        ("index tensor out of range", lambda t, x, i: x[i + 3], (X, I5)),
        ("mask of another shape", lambda t, x, m: x[m], (X, truth(4))),
        ("negative step", lambda t, x: x[::-1], (X,)),
        ("assign another shape", lambda t, x, y: x.detach().__setitem__(0, y), (X, normal(4))),
        ("assign to a leaf", lambda t, x: x.__setitem__(0, 1.0), (X,)),
        ("gather of another rank", lambda t, x, i: x.gather(1, i[0]), (X, M35)),
        ("gather by a wider index", lambda t, x, i: x.gather(0, t.cat([i, i], 1)), (X, M35)),
        ("gather by floats", lambda t, x: x.gather(0, x), (X,)),
        ("scatter by a wider index", lambda t, x, i: x.detach().scatter(0, t.cat([i, i], 1), 1.0), (X, M35)),
        ("scatter of too little", lambda t, x, i: x.scatter(0, i, x[:1]), (X, M35)),
        ("scatter of another type", lambda t, x, i: x.scatter(0, i, x.float()), (X, M35)),
        ("select by a matrix", lambda t, x, i: x.index_select(0, i), (X, M35)),
        ("select an entry before the first", lambda t, x, i: x.index_select(0, i[0] - 9), (X, M35)),
        ("add entries of another shape", lambda t, x, i: x.index_add(0, i[0, :2], x), (X, M35)),
        ("add entries of one row", lambda t, x, i: (x * 1).index_add_(0, i[0, :2], x[:1]), (X, M35)),
        ("fill entries with a vector", lambda t, x, i: x.index_fill(0, i[0, :1], x[0]), (X, M35)),
        ("masked_fill with a vector", lambda t, x, m: x.masked_fill(m, x[0]), (X, truth(3, 5))),
        ("masked_fill with a large number", lambda t, x, m: x.byte().masked_fill(m, 300), (X, truth(3, 5))),
        ("masked_scatter of too little", lambda t, x, m: x.masked_scatter(m | True, x[0]), (X, truth(3, 5))),
        ("gather out of range", lambda t, x, i: x.gather(1, i + 7), (X, whole(2, 3, 2))),
        ("topk", lambda t, x: x.topk(9), (X,)),
        ("kthvalue", lambda t, x: x.kthvalue(0), (X,)),
        ("quantile", lambda t, x: x.quantile(1.5), (X,)),
        ("mean of integers", lambda t, x: x.mean(), (I5,)),
        ("var of integers", lambda t, x: x.var(), (I5,)),
        ("maximum of nothing", lambda t, x: x.max(), (normal(0),)),
        ("item of many", lambda t, x: x.item(), (X,)),
        ("truth of many", lambda t, x: bool(x), (X,)),
        ("length of a scalar", lambda t, x: len(x), (normal(),)),
        ("iteration of a scalar", lambda t, x: list(x), (normal(),)),
        ("clamp without limits", lambda t, x: x.clamp(), (X,)),
        ("einsum names", lambda t, x: t.einsum("ijk->i", x), (X,)),
        ("einsum operands", lambda t, x: t.einsum("ij,jk->ik", x), (X,)),
        ("einsum sizes", lambda t, x, y: t.einsum("ij,jk->ik", x, y), (X, X)),
        ("scatter_reduce word", lambda t, x, i: x.scatter_reduce(1, i, x, "median"), (X, whole(3, 3, 5))),
        ("masked_fill of numbers", lambda t, x, m: x.masked_fill(m, 0.0), (X, whole(2, 3, 5))),
        ("in place of a leaf", lambda t, x: x.add_(1), (X,)),
        ("in place of a view of a leaf", lambda t, x: x[0].mul_(2), (X,)),
        ("in place into a smaller shape", lambda t, x, y: x.detach().add_(y), (X, CUBE[:, :, :1] + np.zeros(5))),
        ("in place float into integers", lambda t, i: i.add_(0.5), (I5,)),
        ("in place into an expanded tensor", lambda t, x: x.detach()[:1].expand(4, 5).add_(1), (X,)),
        ("gradients of integers", lambda t, i: i.requires_grad_(), (I5,)),
        ("numpy with gradients", lambda t, x: x.numpy(), (X,)),
        ("backward of many", lambda t, x: (x * 2).backward(), (X,)),
        ("backward without a graph", lambda t, x: x.detach().sum().backward(), (X,)),
        ("backward twice", lambda t, x: [y.backward() for y in [(x * x).sum()] * 2], (X,)),
        ("backward with a wrong gradient", lambda t, x: (x * 2).backward(t.ones(2)), (X,)),
        ("gradient of an unused input", lambda t, x, y: t.autograd.grad(x.sum(), y), (X, X)),
        ("gradient without requires_grad", lambda t, x: t.autograd.grad(x.sum(), t.ones(2)), (X,)),
        ("changed saved tensor", lambda t, x: _changed(t, x), (X,)),
        ("hook without requires_grad", lambda t, x: x.detach().register_hook(print), (X,)),
        ("post hook on a result", lambda t, x: (x * 2).register_post_accumulate_grad_hook(print), (X,)),
        ("retain_grad without requires_grad", lambda t, x: x.detach().retain_grad(), (X,)),
        ("requires_grad of a result", lambda t, x: (x * 2).requires_grad_(False), (X,)),
        ("gradient of another shape", lambda t, x: setattr(x, "grad", t.ones(2, dtype=t.float64)), (X,)),
        ("inference tensor saved", lambda t, x: _saved_inference(t, x), (X,)),
        ("inference tensor written", lambda t, x: _written_inference(t), (X,)),
        ("anomaly", lambda t, x: _anomaly(t, x), (X,)),
        ("legacy apply", lambda t, x: _function(t, "none").apply(x).sum().backward(), (X,)),
        ("wrong count of gradients", lambda t, x: _function(t, "many").apply(x).sum().backward(), (X,)),
        ("no backward", lambda t, x: _function(t, "missing").apply(x).sum().backward(), (X,)),
        ("differentiated twice", lambda t, x: _twice(t, x), (X,)),
        ("saving a number", lambda t, x: _function(t, "number").apply(x), (X,)),
        ("tensor of words", lambda t, x: t.tensor("abc"), (X,)),
        ("ragged tensor", lambda t, x: t.tensor([[1.0], [1.0, 2.0]]), (X,)),
        ("negative size", lambda t, x: t.zeros(-1), (X,)),
        ("arange that never ends", lambda t, x: t.arange(0, 5, 0), (X,)),
        ("randint without numbers", lambda t, x: t.randint(5, 5, (2,)), (X,)),
    ),
)  # fmt: skip
def test_tensors(case):
    check_error(case)


def _changed(t, x):
    y = x * 1
    z = (y * y).sum()
    y.add_(1)
    z.backward()


def _saved_inference(t, x):
    with t.inference_mode():
        y = t.ones(3, 5, dtype=t.float64)
    (x * y).sum().backward()


def _written_inference(t):
    with t.inference_mode():
        y = t.ones(3)
    y.add_(1)


def _anomaly(t, x):
    with t.autograd.detect_anomaly():
        ((x * 0) / (x * 0)).sum().backward()


def _function(t, what):
    class Odd(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            if what == "number":
                ctx.save_for_backward(3)
            return x * 2

    if what != "missing":

        def backward(ctx, grad):
            return (grad, grad) if what == "many" else "nothing"

        Odd.backward = staticmethod(backward)
    return Odd


def _twice(t, x):
    differentiable = t.autograd.function.once_differentiable

    class Once(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @differentiable
        def backward(ctx, grad):
            return 2 * grad * ctx.saved_tensors[0]

    (g,) = t.autograd.grad(Once.apply(x).sum(), x, create_graph=True)
    g.sum().backward()


@pytest.mark.parametrize(
    "case",
    cases(
        ("linear", lambda t, x: t.nn.Linear(4, 2).double()(x), (X,)),
        ("conv2d channels", lambda t, x: t.nn.Conv2d(4, 2, 3).double()(x[None]), (CUBE,)),
        ("conv2d rank", lambda t, x: t.nn.Conv2d(5, 2, 3).double()(x), (X,)),
        ("conv2d kernel", lambda t, x: t.nn.Conv2d(2, 2, 9).double()(x), (CUBE,)),
        ("conv2d groups", lambda t, x: t.nn.Conv2d(4, 6, 3, groups=4), (X,)),
        ("conv2d padding word", lambda t, x: t.nn.Conv2d(4, 6, 3, padding="some"), (X,)),
        ("conv2d same with stride", lambda t, x: t.nn.Conv2d(4, 6, 3, 2, padding="same"), (X,)),
        ("batch_norm rank", lambda t, x: t.nn.BatchNorm2d(3).double()(x), (X,)),
        ("batch_norm of one", lambda t, x: t.nn.BatchNorm1d(5).double()(x[:1]), (X,)),
        ("batch_norm channels", lambda t, x: t.nn.BatchNorm1d(4).double()(x), (X,)),
        ("layer_norm shape", lambda t, x: t.nn.LayerNorm(4).double()(x), (X,)),
        ("group_norm groups", lambda t, x: t.nn.GroupNorm(3, 4), (X,)),
        ("embedding of floats", lambda t, x: t.nn.Embedding(4, 2)(x), (X,)),
        ("embedding out of range", lambda t, i: t.nn.Embedding(3, 2)(i + 3), (I5,)),
        ("dropout", lambda t, x: t.nn.Dropout(1.5), (X,)),
        ("functional dropout", lambda t, x: t.nn.functional.dropout(x, -0.1), (X,)),
        ("glu", lambda t, x: t.nn.functional.glu(x), (X,)),
        ("max_pool padding", lambda t, x: t.nn.functional.max_pool2d(x, 2, padding=2), (CUBE,)),
        ("pad too far", lambda t, x: t.nn.functional.pad(x, (4, 0), mode="reflect"), (CUBE,)),
        ("interpolate both", lambda t, x: t.nn.functional.interpolate(x[None], 3, 2.0), (CUBE,)),
        ("interpolate none", lambda t, x: t.nn.functional.interpolate(x[None]), (CUBE,)),
        ("interpolate corners", lambda t, x: t.nn.functional.interpolate(x[None], 3, align_corners=True), (CUBE,)),
        ("pixel_shuffle", lambda t, x: t.nn.functional.pixel_shuffle(x, 2), (CUBE,)),
        ("fold", lambda t, x: t.nn.functional.fold(x[None], (4, 5), 2), (X,)),
        ("cross_entropy batches", lambda t, x, y: t.nn.functional.cross_entropy(x, y), (X, whole(5, 4))),
        ("cross_entropy classes", lambda t, x, y: t.nn.functional.cross_entropy(x, y + 5), (X, whole(5, 3))),
        ("cross_entropy smoothing", lambda t, x, y: t.nn.functional.cross_entropy(x, y, label_smoothing=2.0), (X, whole(5, 3))),
        ("reduction", lambda t, x: t.nn.functional.mse_loss(x, x, reduction="some"), (X,)),
        ("bce range", lambda t, x: t.nn.functional.binary_cross_entropy(x + 5, x.detach()), (X,)),
        ("bce shapes", lambda t, x: t.nn.functional.binary_cross_entropy(x, x[:, :2].detach()), (X,)),
        ("attention shapes", lambda t, x: t.nn.functional.scaled_dot_product_attention(x, x[:, :4], x), (X,)),
        ("attention both masks", lambda t, x: t.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None], x @ x.t(), is_causal=True), (X,)),
        ("transformer features", lambda t, x: t.nn.Transformer(6, 2, 1, 1, 8).double()(x, x), (X,)),
        ("lstm features", lambda t, x: t.nn.LSTM(4, 3).double()(x), (X,)),
        ("lstm states", lambda t, x: t.nn.LSTM(5, 3).double()(x, (x, x)), (X,)),
        ("rnn nonlinearity", lambda t, x: t.nn.RNN(5, 3, nonlinearity="sine"), (X,)),
        ("embedding_bag mode", lambda t, i: t.nn.functional.embedding_bag(i[None], t.ones(4, 2), mode="some"), (I5,)),
        ("embedding_bag offsets", lambda t, i: t.nn.functional.embedding_bag(i, t.ones(4, 2)), (I5,)),
        ("normalized by p", lambda t, x: t.nn.functional.softshrink(x, -1.0), (X,)),
        ("forward is missing", lambda t, x: t.nn.Module()(x), (X,)),
        ("init argument", lambda t, x: t.nn.Module(3), (X,)),
        ("unknown member", lambda t, x: t.nn.Linear(1, 1).nothing, (X,)),
        ("parameter name with a dot", lambda t, x: t.nn.Module().register_parameter("a.b", None), (X,)),
        ("parameter without a name", lambda t, x: t.nn.Module().register_parameter("", None), (X,)),
        ("parameter name is taken", lambda t, x: t.nn.Linear(1, 1).register_parameter("forward", None), (X,)),
        ("parameter name is no text", lambda t, x: t.nn.Module().register_parameter(3, None), (X,)),
        ("parameter is a tensor", lambda t, x: t.nn.Module().register_parameter("w", x), (X,)),
        ("buffer is a number", lambda t, x: t.nn.Module().register_buffer("b", 3), (X,)),
        ("module is a number", lambda t, x: t.nn.Module().add_module("m", 3), (X,)),
        ("training mode", lambda t, x: t.nn.Linear(1, 1).train("yes"), (X,)),
        ("to integers", lambda t, x: t.nn.Linear(1, 1).to(t.int64), (X,)),
        ("missing submodule", lambda t, x: t.nn.Linear(1, 1).get_submodule("a"), (X,)),
        ("state of another shape", lambda t, x: t.nn.Linear(1, 1).load_state_dict(t.nn.Linear(2, 1).state_dict()), (X,)),
        ("state with other names", lambda t, x: t.nn.Linear(1, 1).load_state_dict({"w": x}), (X,)),
        ("state that is no dictionary", lambda t, x: t.nn.Linear(1, 1).load_state_dict(3), (X,)),
        ("module list index", lambda t, x: t.nn.ModuleList([t.nn.ReLU()])[3], (X,)),
        ("sequential plus a number", lambda t, x: t.nn.Sequential() + 3, (X,)),
        ("parameter list call", lambda t, x: t.nn.ParameterList([])(x), (X,)),
        ("fan of a vector", lambda t, x: t.nn.init.kaiming_normal_(x[0].detach()), (X,)),
        ("fan mode", lambda t, x: t.nn.init.kaiming_normal_(x.detach(), mode="fan"), (X,)),
        ("gain", lambda t, x: t.nn.init.calculate_gain("sine"), (X,)),
        ("eye of a cube", lambda t, x: t.nn.init.eye_(x.detach()), (CUBE,)),
        ("dirac of a matrix", lambda t, x: t.nn.init.dirac_(x.detach()), (X,)),
        ("pre-hook result", lambda t, x: _hooked(t, x, True), (X,)),
        ("both kinds of backward hooks", lambda t, x: _both(t), (X,)),
        ("optimizer without parameters", lambda t, x: t.optim.SGD([], lr=0.1), (X,)),
        ("optimizer of a tensor", lambda t, x: t.optim.SGD(x, lr=0.1), (X,)),
        ("optimizer of a result", lambda t, x: t.optim.SGD([x * 2], lr=0.1), (X,)),
        ("optimizer twice", lambda t, x: t.optim.SGD([{"params": [x]}, {"params": [x]}], lr=0.1), (X,)),
        ("nesterov without momentum", lambda t, x: t.optim.SGD([x], lr=0.1, nesterov=True), (X,)),
        ("betas", lambda t, x: t.optim.Adam([x], betas=(1.5, 0.9)), (X,)),
        ("schedule of no optimizer", lambda t, x: t.optim.lr_scheduler.StepLR(3, 1), (X,)),
    ),
)  # fmt: skip
def test_modules(case):
    check_error(case)


def _hooked(t, x, value):
    m = t.nn.Identity()
    m.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
    m(x)


def _both(t):
    m = t.nn.Identity()
    m.register_full_backward_hook(print)
    m.register_backward_hook(print)
