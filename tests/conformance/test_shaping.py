"""Views, joining, splitting, indexing and placing against PyTorch: negative dimensions, zero sizes, assignments."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.compare import cases, check, normal, positive, spread, truth, whole

X, CUBE = normal(3, 5), normal(2, 3, 4)
I24, B34 = whole(3, 2, 4), truth(3, 4)


def _shape_of_a_view(t, x):
    y = x * 1
    part, row = y[1:], y[2]
    part.t_()
    part.mul_(2)
    row.unsqueeze_(0).add_(x[0])
    y.mul_(x)
    return y, part, row, y.shape, part.shape, row.shape


def _shape_of_an_owner(t, x):
    y = x * 1
    row = y[1]
    y.transpose_(0, 1)
    row.mul_(3)
    y.unsqueeze_(1)
    y[0].add_(x[:, 0])
    later = y[:, 0]
    later.mul_(x.t())
    return y, row, later, y.squeeze_()


def _write_strided(t, x):
    y = (x * 1).flatten()
    part = y.as_strided((2, 3), (6, 2), 1)
    part.mul_(x[:2, :3])
    return y, part


@pytest.mark.parametrize(
    "case",
    cases(
        ("reshape", lambda t, x: (x.reshape(4, 6), x.reshape((-1, 3)), t.reshape(x, (2, -1)), x.view_as(x), x.reshape_as(x)), (CUBE,)),
        ("view", lambda t, x: (x.clone().contiguous().view(6, 4), x.contiguous().view(-1), x.contiguous().view((2, 12))), (CUBE,)),
        ("flatten", lambda t, x: (x.flatten(), t.flatten(x, 1), x.flatten(0, 1), x.flatten(start_dim=-2), x.ravel()), (CUBE,)),
        ("unflatten", lambda t, x: (x.unflatten(2, (2, 2)), t.unflatten(x, -1, (-1, 2))), (CUBE,)),
        ("permute", lambda t, x: (x.permute(2, 0, 1), t.permute(x, (1, 0, 2)), x.permute(-1, 0, -2)), (CUBE,)),
        ("transpose", lambda t, x: (x.transpose(0, 2), t.transpose(x, -1, 0), t.swapaxes(x, 0, 1), t.swapdims(x, 1, 2)), (CUBE,)),
        ("t", lambda t, x: (x.t(), x.T, x.mT, t.t(x[0]), x.H, x.adjoint()), (X,)),
        ("movedim", lambda t, x: (t.movedim(x, 0, -1), x.movedim((0, 1), (2, 0)), t.moveaxis(x, 2, 0)), (CUBE,)),
        ("squeeze", lambda t, x: (x.squeeze(), x.squeeze(0), t.squeeze(x, -1), x.squeeze((0, 2)), x.squeeze(1)), (normal(1, 3, 1),)),
        ("unsqueeze", lambda t, x: (x.unsqueeze(0), t.unsqueeze(x, -1), x.unsqueeze(1), x.unsqueeze(-2)), (X,)),
        ("expand", lambda t, x: (x.expand(3, 4), x.expand(2, 3, -1), x.expand((3, 4)), t.broadcast_to(x, (3, 4)), x.expand_as(x.expand(3, 4))), (normal(3, 1)[:, :1],)),
        ("repeat", lambda t, x: (x.repeat(2, 1), x.repeat(2, 1, 3), t.tile(x, (2,)), x.tile((2, 1, 2))), (X,)),
        ("repeat_interleave", lambda t, x: (t.repeat_interleave(x, 2), x.repeat_interleave(3, dim=0), x.repeat_interleave(2, dim=-1)), (X,)),
        ("cat", lambda t, x, y: (t.cat([x, y]), t.cat((x, x), dim=1), t.cat([x, y], -2), t.concat([x]), t.concatenate([x, y])), (X, normal(2, 5))),
        ("cat promotes", lambda t, x, y: t.cat([x, y]), (X, whole(5, 2, 5))),
        ("cat with empty ones", lambda t, x, e: (t.cat([x, e]), t.cat([e, e])), (X, normal(0)), 1e-9, 1),
        ("stack", lambda t, x, y: (t.stack([x, y]), t.stack((x, y), dim=-1), t.stack([x, y], 1)), (X, normal(3, 5, seed=1))),
        ("stacks", lambda t, x, y: (t.hstack([x, x]), t.vstack([x, y]), t.dstack([x, x]), t.column_stack([y, y]), t.row_stack([y, y])), (X, normal(5))),
        ("split", lambda t, x: (x.split(2), t.split(x, 2, dim=1), x.split([1, 2], dim=0), x.split_with_sizes([1, 4], 1)), (X,)),
        ("chunk", lambda t, x: (x.chunk(2), t.chunk(x, 3, dim=-1), x.chunk(7)), (X,)),
        ("tensor_split", lambda t, x: (x.tensor_split(2), t.tensor_split(x, (1, 3), dim=1), t.hsplit(x, 5), x.vsplit(3)), (X,)),
        ("unbind", lambda t, x: (x.unbind(), t.unbind(x, dim=-1), list(x)), (X,)),
        ("narrow", lambda t, x: (x.narrow(1, 1, 3), t.narrow(x, 0, -2, 2), x.narrow(1, 2, 0)), (X,)),
        ("select", lambda t, x: (x.select(0, 1), t.select(x, 1, -1)), (X,)),
        ("flip", lambda t, x: (x.flip(0), t.flip(x, (0, -1)), x.flip([1]), t.fliplr(x), t.flipud(x)), (CUBE,)),
        ("roll", lambda t, x: (x.roll(1), t.roll(x, 2, 0), t.roll(x, (1, -1), dims=(0, 1)), x.roll(-7, 1)), (X,)),
        ("rot90", lambda t, x: [t.rot90(x, k, (0, 1)) for k in (-1, 0, 1, 2, 3)], (CUBE,)),
        ("triangles", lambda t, x: (x.tril(), x.triu(1), t.tril(x, -1), t.triu(x, diagonal=-2)), (X,)),
        ("triangles of batches", lambda t, x: (x.tril(1), x.triu()), (CUBE,)),
        ("triangle in place", lambda t, x: ((x * 1).tril_(), (x * 1).triu_(1)), (X,)),
        ("triangle indices", lambda t, x: (t.tril_indices(3, 4), t.triu_indices(4, 3, 1), t.tril_indices(2, 3, offset=-1)), (X,)),
        ("diagonal", lambda t, x: (x.diagonal(), t.diagonal(x, 1), x.diagonal(-1, 0, 2), x.diagonal(dim1=-1, dim2=0)), (CUBE,)),
        ("diag", lambda t, x, y: (t.diag(x), t.diag(y), t.diag(y, 1), x.diag(-1), t.diagflat(y, -2), x.trace()), (X, normal(3))),
        ("diag_embed", lambda t, x: (t.diag_embed(x), x.diag_embed(1), t.diag_embed(x, -1, 0, 2), t.diag_embed(x, dim1=0, dim2=1)), (X,)),
        ("block_diag", lambda t, x, y: t.block_diag(x, y, x), (X, normal(2, 2))),
        ("combinations", lambda t, x, i: (t.combinations(x), t.combinations(x, 3), t.combinations(x, r=2, with_replacement=True), t.combinations(i, 1)), (normal(5), whole(9, 4))),
        ("vander", lambda t, x, i: (t.vander(x), t.vander(x, 3), t.vander(x, N=2, increasing=True), t.vander(i, 0), t.vander(i, 4)), (normal(3), whole(4, 3)), 1e-9, 0),
        ("cartesian_prod", lambda t, x, y: t.cartesian_prod(x, y), (normal(2), normal(3))),
        ("meshgrid", lambda t, x, y: (t.meshgrid(x, y, indexing="ij"), t.meshgrid([x, y], indexing="xy")), (normal(2), normal(3))),
        ("broadcast_tensors", lambda t, x, y: t.broadcast_tensors(x, y), (X, normal(5))),
        ("atleast", lambda t, x, y, z: [f(v) for f in (t.atleast_1d, t.atleast_2d, t.atleast_3d) for v in (x, y, z)], (normal(), normal(3), X)),
        ("unfold", lambda t, x: (x.unfold(1, 3, 1), x.unfold(0, 2, 2), x.unfold(-1, 2, 3)), (X,)),
        ("zero sizes", lambda t, x: (x.reshape(0, 6), x.flatten(), x.t(), t.cat([x, x]), x.repeat(2, 1), x.expand(2, 0, 3)), (normal(0, 3),), 1e-9, 1),
        ("squeeze_ and others", lambda t, x: ((x * 1).squeeze_(), (x * 1).squeeze_(0), (x * 1).unsqueeze_(-1), (x * 1).unsqueeze_(1)), (normal(1, 3, 1),)),
        ("transpose_ and others", lambda t, x: ((x * 1).transpose_(0, 2), (x * 1).swapaxes_(0, 1), (x * 1).swapdims_(-1, 1), (x * 1)[0].t_()), (CUBE,)),
        ("shape of a view in place", _shape_of_a_view, (X,)),
        ("shape of an owner in place", _shape_of_an_owner, (X,)),
        ("as_strided", lambda t, x: (t.as_strided(x.flatten(), (3, 2), (1, 4)), x.flatten().as_strided((2, 2, 2), (5, 1, 0), 1), x.flatten()[3:].as_strided((2, 2), (2, 5))), (X,)),
        ("as_strided of a part", lambda t, x: x.flatten()[4:10].as_strided((2, 2), (3, 1)).storage_offset(), (X,)),
        ("write to as_strided", _write_strided, (X,)),
        ("clone and contiguous", lambda t, x: (x.clone(), x.t().contiguous(), x.t().is_contiguous(), x.stride(0) > 0), (X,)),
        ("size and numel", lambda t, x: (x.size(0), x.size(-1), x.numel(), x.dim(), x.ndim, x.nelement(), len(x)), (X,)),
        ("sum_to_size", lambda t, x: (x.sum_to_size(1, 5), x.sum_to_size((5,)), x.sum_to_size(3, 1)), (X,)),
    ),
)  # fmt: skip
def test_shapes(case):
    check(case)


@pytest.mark.parametrize(
    "case",
    cases(
        ("ints", lambda t, x: (x[0], x[-1], x[1, 2], x[0, -1, 1]), (CUBE,)),
        ("slices", lambda t, x: (x[:, 1:], x[::2], x[:, 1:3, ::2], x[-2:], x[5:], x[:, :-1]), (CUBE,)),
        ("none and ellipsis", lambda t, x: (x[None], x[..., None], x[..., 0], x[0, ..., 1], x[:, None, :, 1:]), (CUBE,)),
        ("index tensor", lambda t, x, i: (x[i], x[:, i], x[i, 0], x[..., i]), (normal(3, 3, 3), I24)),
        ("negative index tensor", lambda t, x, i: (x[i], x[:, i]), (X, whole(3, 4, low=-3))),
        ("two index tensors", lambda t, x, i, j: (x[i, j], x[:, i, j], x[i, :, j], x[i, None, j]), (normal(3, 3, 3), whole(3, 4), whole(3, 4, seed=1))),
        ("broadcast index tensors", lambda t, x, i, j: (x[i, j], x[i[:, None], j]), (normal(3, 3), whole(3, 4)[:, None], whole(3, 2))),
        ("lists", lambda t, x: (x[[0, 2]], x[:, [1, 0, 1]], x[[0, 1], [2, 3]]), (X,)),
        ("masks", lambda t, x, m: (x[m], x[~m], x[m[:, 0]], x[:, m[0]]), (normal(3, 4), B34)),
        ("mask and slice", lambda t, x, m: (x[m, 1:], x[1:, m[:2]]), (normal(3, 2), truth(3))),
        ("assign", lambda t, x, y: _assigned(x, y, lambda z, v: z.__setitem__(1, v)), (X, normal(5))),
        ("assign slice", lambda t, x, y: _assigned(x, y, lambda z, v: z.__setitem__((slice(None), slice(1, 4, 2)), v)), (X, normal(3, 2))),
        ("assign scalar", lambda t, x: _assigned(x, 2.5, lambda z, v: z.__setitem__((..., 0), v)), (X,)),
        ("assign broadcast", lambda t, x, y: _assigned(x, y, lambda z, v: z.__setitem__(slice(0, 2), v)), (X, normal(1, 5))),
        ("assign by index", lambda t, x, i, y: _assigned(x, y, lambda z, v: z.__setitem__(i, v)), (X, np.array([2, 0]), normal(2, 5))),
        ("assign by two indices", lambda t, x, i, j, y: _assigned(x, y, lambda z, v: z.__setitem__((i, j), v)), (X, np.array([2, 0]), np.array([1, 4]), normal(2))),
        ("assign by mask", lambda t, x, m: _assigned(x, -1.0, lambda z, v: z.__setitem__(m, v)), (normal(3, 4), B34)),
        ("assign values by mask", lambda t, x, m, y: _assigned(x, y[: int(m.sum())], lambda z, v: z.__setitem__(m, v)), (normal(3, 4), B34, normal(12))),
        ("add to slice", lambda t, x, y: _assigned(x, y, _add_to_slice), (X, normal(3))),
        ("chained writes", lambda t, x: _assigned(x, None, _chained), (X,)),
        ("index_select", lambda t, x, i: (x.index_select(0, i), t.index_select(x, 1, i)), (normal(4, 4), whole(4, 6))),
        ("take", lambda t, x, i: (t.take(x, i), x.take(i)), (X, whole(15, 2, 3))),
        ("take_along_dim", lambda t, x, i: (t.take_along_dim(x, i, 1), x.take_along_dim(i[:, :1] % 3, dim=0), x.contiguous().take_along_dim(i.contiguous())), (X, whole(5, 3, 2))),
        ("take_along_dim broadcast", lambda t, x, i: t.take_along_dim(x, i, dim=1), (X, whole(5, 1, 2))),
        ("gather", lambda t, x, i: (t.gather(x, 1, i), x.gather(-1, i), x.gather(dim=0, index=i % 3)), (X, whole(5, 3, 2))),
        ("scatter_add", lambda t, x, i, y: (x.scatter_add(1, i, y), t.scatter_add(x, dim=1, index=i[:2], src=y[:2])), (X, whole(5, 3, 2), normal(3, 2))),
        ("scatter", lambda t, x, i, y: (x.scatter(0, i, y), t.scatter(x, 0, i, 2.0), x.scatter(dim=0, index=i, value=1.5)), (X, np.array([[2, 0, 1]]), normal(1, 3))),
        ("scatter in place", lambda t, x, i, y: ((x * 1).scatter_(0, i, y), (x * 1).scatter_add_(0, i, y), (x * 1).scatter_(0, i, 3.0)), (X, np.array([[2, 0, 1]]), normal(1, 3))),
        ("scatter_reduce sum", lambda t, x, i, y: [x.scatter_reduce(1, i, y, r, include_self=s) for r in ("sum", "mean") for s in (True, False)], (X, whole(5, 3, 2), normal(3, 2)), 1e-9, 1),
        ("scatter_reduce", lambda t, x, i, y: [t.scatter_reduce(x, 1, i, y, reduce=r, include_self=s) for r in ("amax", "amin", "prod") for s in (True, False)], (spread(3, 5), whole(5, 3, 4), spread(3, 4, seed=1) + 0.1), 1e-9, 1),
        ("index_add", lambda t, x, i, y: (x.index_add(0, i, y), t.index_add(x, 0, i, y, alpha=2), (x * 1).index_add_(0, i, y)), (X, whole(3, 4), normal(4, 5))),
        ("index_copy", lambda t, x, i, y: (x.index_copy(0, i, y), (x * 1).index_copy_(0, i, y)), (X, np.array([2, 0]), normal(2, 5))),
        ("index_fill", lambda t, x, i: (x.index_fill(1, i, -1.0), (x * 1).index_fill_(0, i, 2.0)), (X, np.array([2, 0]))),
        ("index_put", lambda t, x, i, j, y: (x.index_put((i, j), y), (x * 1).index_put_((i, j), y, accumulate=True)), (X, np.array([2, 0]), np.array([1, 4]), normal(2))),
        ("index_put accumulates", lambda t, x, i, y: (x * 1).index_put_((i,), y, accumulate=True), (X, np.array([1, 1, 0]), normal(3, 5))),
        ("masked", lambda t, x, m, y: (x.masked_fill(m, 2.0), t.masked_select(x, m), x.masked_scatter(m, y), x.masked_fill(m[0], -np.inf).softmax(1)), (normal(3, 4), B34, normal(12)), 1e-9, 1),
        ("masked_fill by tensor", lambda t, x, m, v: x.masked_fill(m, v), (normal(3, 4), B34, normal())),
        ("select_scatter", lambda t, x, y: (x.select_scatter(y, 0, 1), t.slice_scatter(x, y[None], 0, 2, 3)), (X, normal(5))),
        ("fill_diagonal_", lambda t, x: (x * 1).fill_diagonal_(5.0), (X,)),
        ("nonzero", lambda t, x: (x.nonzero(), t.nonzero(x, as_tuple=True), t.argwhere(x), t.where(x > 1)), (whole(3, 3, 4),)),
        ("in", lambda t, x: (2 in x, 99 in x), (whole(3, 3, 4),)),
        ("index of integers", lambda t, x, i: (x[i], x[1:, i]), (whole(9, 3, 3), whole(3, 5))),
        ("zero size index", lambda t, x, i: (x[i], x[:, :0], x[3:]), (X, np.zeros(0, np.int64)), 1e-9, 1),
    ),
)  # fmt: skip
def test_indexing(case):
    check(case)


def _assigned(x, value, write):
    result = x * 1.0
    write(result, value)
    return result * result


def _add_to_slice(x, y):
    x[:, 1] += y
    x[1:, 2:] *= 2


def _chained(x, _):
    x[1][2:] = x[0][:3] * 2
    x[:, 0] = x[:, 4]
    x.t()[3] = 1.0


@pytest.mark.parametrize(
    "case",
    cases(
        ("zeros", lambda t, x: (t.zeros(2, 3), t.zeros((2, 0)), t.zeros(3, dtype=t.int64), t.zeros([]), t.zeros_like(x)), (X,)),
        ("ones", lambda t, x: (t.ones(2, 3), t.ones_like(x, dtype=t.int32), x.new_ones(2), x.new_zeros((2, 2)), x.new_full((2,), 3)), (X,)),
        ("full", lambda t, x: (t.full((2, 3), 1.5), t.full((2,), 3), t.full((2,), True), t.full_like(x, 2.0)), (X,)),
        ("arange", lambda t, x: (t.arange(5), t.arange(1, 4), t.arange(0, 1, 0.25), t.arange(5, 0, -2), t.arange(3, dtype=t.float32), t.arange(2.5)), (X,)),
        ("linspace", lambda t, x: (t.linspace(0, 1, 5), t.linspace(-1, 2, steps=4), t.linspace(3, 3, 1), t.logspace(0, 2, 3)), (X,), 1e-6, 0),
        ("eye", lambda t, x: (t.eye(3), t.eye(2, 4), t.eye(3, dtype=t.float64)), (X,)),
        ("tensor", lambda t, x: (t.tensor(3), t.tensor(2.5), t.tensor([1, 2]), t.tensor([[1.0], [2]]), t.tensor([True, False]), t.tensor([], dtype=t.int64)), (X,)),
        ("as_tensor", lambda t, x: (t.as_tensor([1, 2.5]), t.as_tensor(x), t.as_tensor(np.arange(3))), (X,)),
        ("is_tensor", lambda t, x: (t.is_tensor(x), t.is_tensor(3), t.numel(x), t.is_floating_point(x)), (X,)),
        ("empty shapes", lambda t, x: (t.empty(3, 5).shape, t.empty_like(x).shape, x.new_empty(2, 2).shape), (X,)),
        ("tolist", lambda t, x: (x.tolist(), x.sum().item(), int(x.sum()), bool(x.sum() > 0)), (whole(9, 2, 3),)),
        ("dtype defaults", lambda t, x: (t.tensor([1.5]) + t.tensor([1]), t.ones(2) * 2, t.arange(3) / 2, t.arange(3) * 1.5), (X,)),
        ("promotion with zero dimensions", lambda t, x: (t.ones(2, dtype=t.int32) + t.tensor(2), t.ones(2) * t.tensor(2.0, dtype=t.float64), t.tensor(2) * t.tensor(2.5), t.tensor([1], dtype=t.uint8) + 300 % 7), (X,)),
        ("result_type", lambda t, x: (repr(t.result_type(t.ones(2), 1)).endswith(".float32"), repr(t.result_type(t.arange(2), 1.5)).endswith(".float32")), (X,)),
        ("broadcast_shapes", lambda t, x: tuple(t.broadcast_shapes((2, 1), (3,), (1, 1, 1))), (X,)),
    ),
)  # fmt: skip
def test_creation(case):
    check(case._replace(order=0))


@pytest.mark.parametrize(
    "case",
    cases(
        ("matmul", lambda t, x, y: (x @ y, t.matmul(x, y), x.matmul(y), x.mm(y), t.mm(x, y)), (X, normal(5, 2))),
        ("matmul of vectors", lambda t, x, v, w: (x @ v, w @ x, v @ v, t.dot(v, v), x.mv(v), t.vdot(v, v), t.inner(v, v)), (X, normal(5), normal(3))),
        ("matmul of batches", lambda t, x, y, v: (x @ y, x @ y[0], y @ v, x[0] @ y), (CUBE, normal(2, 4, 3), normal(3))),
        ("matmul broadcasts", lambda t, x, y: x @ y, (normal(2, 1, 3, 4), normal(5, 4, 2))),
        ("matmul of nothing", lambda t, x, y: (x @ y, y @ x), (normal(3, 0), normal(0, 3)), 1e-9, 1),
        ("matmul of integers", lambda t, x, y: x @ y, (whole(9, 3, 4), whole(9, 4, 2))),
        ("bmm", lambda t, x, y: (t.bmm(x, y), x.bmm(y)), (CUBE, normal(2, 4, 3))),
        ("addmm", lambda t, b, x, y: (t.addmm(b, x, y), b.addmm(x, y, beta=0.5, alpha=2), t.addmm(b[0], x, y, beta=0)), (normal(3, 2), X, normal(5, 2))),
        ("addmv", lambda t, b, x, v: (t.addmv(b, x, v), t.addmv(b, x, v, beta=2, alpha=0.5)), (normal(3), X, normal(5))),
        ("addr", lambda t, b, v, w: (t.addr(b, v, w), t.addr(b, v, w, alpha=2)), (X, normal(3), normal(5))),
        ("baddbmm", lambda t, b, x, y: (t.baddbmm(b, x, y), t.baddbmm(b, x, y, beta=0), t.addbmm(b[0], x, y)), (normal(2, 3, 3), CUBE, normal(2, 4, 3))),
        ("outer", lambda t, v, w: (t.outer(v, w), v.outer(w), t.ger(v, w)), (normal(3), normal(5))),
        ("kron", lambda t, x, y: (t.kron(x.contiguous(), y.contiguous()), t.kron(y[0].contiguous(), x.contiguous())), (normal(2, 3), normal(3, 2))),
        ("cross", lambda t, x, y: (t.cross(x, y, dim=1), t.cross(x, y, dim=-1)), (normal(4, 3), normal(4, 3, seed=1))),
        ("tensordot", lambda t, x, y: (t.tensordot(x, y, 1), t.tensordot(x, y, ([2, 1], [0, 1])), t.tensordot(x, x, dims=3)), (CUBE, normal(4, 3))),
        ("cdist", lambda t, x, y: (t.cdist(x, y), t.cdist(x, y, p=1)), (X, normal(4, 5)), 1e-9, 1),
        ("chain_matmul", lambda t, x, y: t.chain_matmul(x, y, x), (X, normal(5, 3))),
        ("einsum products", lambda t, x, y: (t.einsum("ij,jk->ik", x, y), t.einsum("ij,jk", x, y), t.einsum("ij,jk->ki", x, y), t.einsum("ij,jk->", x, y)), (X, normal(5, 2))),
        ("einsum of one", lambda t, x: (t.einsum("ij->ji", x), t.einsum("ij->j", x), t.einsum("ij->", x), t.einsum("ba", x)), (X,)),
        ("einsum diagonals", lambda t, x: (t.einsum("ii->i", x), t.einsum("ii->", x), t.einsum("ii", x), t.einsum("ij,ji->i", x, x)), (normal(4, 4),)),
        ("einsum batches", lambda t, x, y: (t.einsum("bij,bjk->bik", x, y), t.einsum("bij,bjk->ik", x, y), t.einsum("bij,bkj->bik", x, x), t.einsum("bij,bij->b", x, x)), (CUBE, normal(2, 4, 3))),
        ("einsum ellipsis", lambda t, x, y: (t.einsum("...ij,...jk->...ik", x, y), t.einsum("...j,kj->...k", x, y.transpose(0, 1)[:, 0]), t.einsum("i...->...", x)), (CUBE, normal(1, 4, 4))),
        ("einsum outer", lambda t, v, w: (t.einsum("i,j->ij", v, w), t.einsum("i,i", v, v), t.einsum("i,j", w, v)), (normal(3), normal(5))),
        ("einsum of three", lambda t, x, y, v: (t.einsum("ij,jk,k->i", x, y, v), t.einsum("bn,anm,bm->ba", x, y[None].expand(2, 5, 2), x @ y)), (X, normal(5, 2), normal(2))),
        ("einsum attention", lambda t, q, k: t.einsum("bqhd,bkhd->bhqk", q, k), (normal(2, 3, 2, 4), normal(2, 5, 2, 4))),
        ("einsum operands in a list", lambda t, x, y: t.einsum("ij, jk -> ik", [x, y]), (X, normal(5, 2))),
        ("linalg of products", lambda t, x: (x.t() @ x, (x.t() @ x).trace(), (x @ x.t()).diagonal().sum()), (positive(3, 4),)),
    ),
)  # fmt: skip
def test_products(case):
    check(case)
