"""Ways to call functions that are easily forgotten: by other names, of whole numbers, for a device, without a batch."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.errors import GraphcError, MemoryLimitError
from tests.conformance.compare import Case, agree, cases, check, normal, truth, whole

X, COUNTS, CUBE = normal(3, 4), whole(9, 3, 4), normal(2, 3, 4)
NEW = {"zeros_like": (), "ones_like": (), "full_like": (2.0,), "new_zeros": ((2,),), "new_full": ((2,), 3.0)}
DRAWN = {"rand_like": (), "randn_like": (), "randint_like": (5,), "new_empty": ((2,),), "empty_like": ()}
MADE = {
    "logspace": (0, 2, 5),
    "linspace": (0.5, 3, 4),
    "eye": (2, 3),
    "tril_indices": (3, 4),
    "triu_indices": (3, 2, 1),
}


def _made(t, x):
    results = [getattr(t, name)(*args, device="cpu") for name, args in MADE.items()]
    for name, args in (NEW | DRAWN).items():
        call = (
            getattr(x.detach(), name) if name.startswith("new") else lambda *a, n=name, **k: getattr(t, n)(x, *a, **k)
        )
        result = call(*args, device="cpu", dtype=t.float64)
        results.append(result if name in NEW else t.zeros_like(result))
    drawn = [t.normal(0.0, 1.0, (2,), device="cpu", dtype=t.float64), t.randperm(3, device="cpu", dtype=t.int32)]
    return [*results, *(d * 0 for d in drawn), x.new_tensor([1, 2], device="cpu"), x.new_ones(size=(2, 3))]


def _sizes(t, x):
    named = [t.zeros(size=(2, 3)), t.ones(size=(2,)), t.full(size=(2,), fill_value=3.0), t.rand(size=(2, 3)) * 0]
    return [*named, t.randint(low=0, high=5, size=(2,)) * 0, t.randint(high=5, size=(2,)) * 0]


def _named(t, x):
    views = [x.permute(dims=(1, 0)), x.reshape(shape=(4, 3)), t.reshape(x, shape=(2, 6))]
    wide = [x.expand(size=(2, 3, 4)), t.broadcast_to(x, size=(2, 3, 4)), x.repeat(repeats=(2, 1)), x.tile(dims=(2, 1))]
    return [*views, *wide, x.flip(dims=(0, 1)), t.flip(x, dims=[0])]


def _spreads(t, x):
    given = (None, 0, 2, 1.5)
    results = [f(correction=c) for f in (x.var, x.std) for c in given]
    return [*results, *(t.var_mean(x, 1, correction=c) for c in given), t.std_mean(x, correction=None)]


def _whole_ranges(t, x):
    lines = ((0.5, 10.7, 4), (0, 10, 4), (-3.2, 3.2, 5), (10.9, 0.2, 6), (5, 5, 1))
    ranges = ((0.5, 5.5), (0.9, 5.1, 1.3), (5, 0, -1), (-2.5, 2.5), (0, 9, 2))
    results = [t.linspace(*a, dtype=d) for a in lines for d in (t.int64, t.int32, t.float32, t.float64)]
    results += [t.arange(*a, dtype=d) for a in ranges for d in (t.int64, t.int32, t.float32, t.float64)]
    return [*results, t.arange(0, 5, 0.5, dtype=t.int32), t.logspace(0.3, 2.7, 4, dtype=t.int64)]


def _sums(t, m, v, x, b, y):
    factors = [(beta, alpha) for beta in (0.5, 1.5, 2, 0) for alpha in (1, 0.5, 2)]
    parts = [[t.addmv(v, m, x, beta=p, alpha=q), t.addmm(m[:, :3], m, m[:3].t(), beta=p, alpha=q)] for p, q in factors]
    batches = [[t.addbmm(y[0], b, y, beta=p, alpha=q), t.baddbmm(y, b, y, beta=p, alpha=q)] for p, q in factors]
    return parts + batches


def _units(t, x, y):
    first = t.tensordot(x[:, :1], y, dims=([1], [0]))
    return [first, t.tensordot(x, y[:1], dims=([1], [0])), t.tensordot(x[:, :1], y[:1], dims=([1], [0]))]


def _integrals(t, y, x):
    first = [t.trapezoid(y, x, dim=-2), t.trapezoid(y, x[0], dim=-1), t.trapezoid(y, x[:, :1], dim=1)]
    return [*first, t.trapezoid(y, x[:1], dim=2), t.trapezoid(y[:, :0].detach(), dim=1), t.trapezoid(y[:, :1], dim=1)]


@pytest.mark.parametrize(
    "case",
    cases(
        ("devices", _made, (X,), 1e-9, 0),
        ("sizes by name", _sizes, (X,), 1e-9, 0),
        ("dimensions by name", _named, (X,)),
        ("corrections", _spreads, (X,)),
        ("ranges of whole numbers", _whole_ranges, (X,), 1e-6, 0),
        (
            "at least",
            lambda t, x, y: [t.atleast_2d([x, y]), t.atleast_1d(x, y), t.atleast_3d((y,))],
            (normal(), normal(3)),
        ),
        ("split by a vector", lambda t, x: t.tensor_split(x, (1, 3)), (X,)),
        ("integrals", _integrals, (CUBE, np.sort(normal(3, 4), 0)), 1e-9, 1),
        (
            "norms of negative order",
            lambda t, x: [t.nn.functional.normalize(x, p) for p in (-1, -2.0, 0.5)],
            (X,),
            1e-9,
            1,
        ),
        ("margin of one row", lambda t, x, i: t.nn.functional.multi_margin_loss(x, i), (normal(5), np.array([3]))),
        (
            "margins of one row",
            lambda t, x, i: t.nn.functional.multi_margin_loss(x, i, reduction="none"),
            (normal(5), np.array([3])),
        ),
        ("units", _units, (X, normal(4, 2))),
        ("differences of order 0", lambda t, x, y: t.diff(x, n=0, prepend=y), (X, normal(3, 1))),
        ("sum to a scalar", lambda t, x: x.sum_to_size(()), (X,)),
        (
            "sums of whole numbers",
            _sums,
            (COUNTS, whole(9, 3), whole(9, 4), whole(9, 2, 3, 3), whole(9, 2, 3, 3, seed=1)),
        ),
        ("fills", lambda t, x: [t.full_like(x, -9, dtype=t.uint8), t.full_like(x, 2.7, dtype=t.int8)], (X,), 1e-9, 0),
    ),
)
def test_calls(case):
    check(case)


def test_a_distinct_element_without_dimensions_has_an_index_without():
    def distinct(t, x):
        return t.unique(x, return_inverse=True, return_counts=True)

    agree(Case("", distinct, ()), (np.array(3),), 0)


def test_places_of_a_split_may_be_a_tensor():
    for where in (np.array(2), np.array([1, 3])):
        agree(Case("", lambda t, x, i: t.tensor_split(x, i), ()), (normal(7, 2), where), 1)


@pytest.mark.parametrize("shapes", [((5, 1), 5), (5, (5, 1)), (3,), ((),), ((2, 1), (3,))])
def test_a_number_is_a_shape_of_one_dimension(torch, shapes):
    assert graphc.broadcast_shapes(*shapes) == tuple(torch.broadcast_shapes(*shapes))


@pytest.mark.parametrize(
    "weights", [[1.0, -1.0, 1.0], [1.0, np.nan], [np.inf, 1.0], [0.0, 0.0], [[1.0, 1.0], [0.0, 0.0]]]
)
@pytest.mark.parametrize("replacement", [False, True])
def test_weights_that_are_no_distribution_are_refused(weights, replacement):
    with pytest.raises(GraphcError, match=r"multinomial: [\s\S]*\n +try"):
        graphc.multinomial(graphc.tensor(weights), 1, replacement)


def test_whole_numbers_that_do_not_fit_a_type_are_refused():
    for make in (
        lambda: graphc.full((2,), 300, dtype=graphc.uint8),
        lambda: graphc.tensor([300], dtype=graphc.uint8),
        lambda: graphc.ones(2).byte().fill_(float("nan")),
        lambda: graphc.ones(2).new_full((2,), 2**40, dtype=graphc.int32),
    ):
        with pytest.raises(GraphcError, match=r"\n +try"):
            make()


@pytest.mark.parametrize("dtype", [">f4", ">i8", "longdouble", "U3", "O"])
def test_arrays_of_other_types_are_refused_by_name(dtype):
    array = np.zeros(3, dtype)
    x, double = graphc.ones(3), graphc.compile(lambda a: a * 2)
    for call in (lambda: x + array, lambda: double(array), lambda: x[array], lambda: x.isin(array)):
        with pytest.raises(GraphcError, match=r"not supported[\s\S]*\n +try"):
            call()


def test_what_does_not_fit_into_memory_is_refused():
    large = graphc.ones(1).expand(2**46)
    for call in (
        lambda: large * 2,
        lambda: graphc.zeros(2**46),
        lambda: graphc.ones(1).expand(2**33, 2**33),
        lambda: graphc.ones(1).expand(2**64),
        lambda: graphc.compile(lambda x: x.expand(2**46) * 2)(graphc.ones(1)),
    ):
        with pytest.raises(GraphcError):
            call()
    assert issubclass(MemoryLimitError, MemoryError)


FLAGS = truth(3, 4)
WRONG = {
    "linspace": lambda t, x, m: t.linspace(0, 1, -1),
    "linspace of vectors": lambda t, x, m: t.linspace(x[0].detach(), 1, 3),
    "logspace": lambda t, x, m: t.logspace(0, 1, -1),
    "eye": lambda t, x, m: t.eye(-1),
    "endless range": lambda t, x, m: t.arange(0, float("inf")),
    "huge range": lambda t, x, m: t.arange(0, 1e30),
    "range of text": lambda t, x, m: t.arange("3"),
    "hstack of nothing": lambda t, x, m: t.hstack([]),
    "vstack of nothing": lambda t, x, m: t.vstack([]),
    "dstack of nothing": lambda t, x, m: t.dstack([]),
    "column_stack of numbers": lambda t, x, m: t.column_stack([1, 2]),
    "hstack of one tensor": lambda t, x, m: t.hstack(x),
    "no matrices": lambda t, x, m: t.chain_matmul(),
    "turn within a line": lambda t, x, m: x.rot90(1, [0]),
    "turn in equal dimensions": lambda t, x, m: x.rot90(1, [0, 0]),
    "half a turn": lambda t, x, m: x.rot90(1.5, [0, 1]),
    "move to fewer places": lambda t, x, m: x.movedim((0, 1), (1,)),
    "move one twice": lambda t, x, m: x.movedim((0, 0), (0, 1)),
    "move to one place": lambda t, x, m: x.movedim((0, 1), (1, 1)),
    "rate 0": lambda t, x, m: x.detach().exponential_(0),
    "range downwards": lambda t, x, m: x.detach().uniform_(3, -1),
    "deviation NaN": lambda t, x, m: x.detach().normal_(0, float("nan")),
    "negative deviations": lambda t, x, m: t.normal(0.0, -1 - x.detach().abs()),
    "random_ up to 0": lambda t, x, m: x.detach().random_(0),
    "grid of nothing": lambda t, x, m: t.meshgrid(),
    "class out of range": lambda t, x, m: t.nn.functional.one_hot(m.long() + 3, 2),
    "random_": lambda t, x, m: x.detach().random_(-3),
    "improbable": lambda t, x, m: t.bernoulli(x.detach().abs() + 1.5),
    "no samples": lambda t, x, m: t.multinomial(x.detach().abs(), 0),
    "out": lambda t, x, m: t.add(x, x, out=3),
    "out of cat": lambda t, x, m: t.cat([x, x], out=3),
    "sum along a half": lambda t, x, m: x.sum(1.5),
    "split": lambda t, x, m: x.split(1.5),
    "split to less than nothing": lambda t, x, m: x.split([1, -1, 3]),
    "hsplit": lambda t, x, m: x.hsplit(3),
    "repeat": lambda t, x, m: x.repeat(-1, 1),
    "repeat_interleave": lambda t, x, m: x.repeat_interleave(-1),
    "roll": lambda t, x, m: x.roll("a", 0),
    "renorm": lambda t, x, m: x.renorm(2, 0, -1.0),
    "full of text": lambda t, x, m: t.full((2,), "a"),
    "full of a vector": lambda t, x, m: t.full((2,), x[0].detach()),
    "size of full": lambda t, x, m: t.full(2, 1),
    "zeros like a number": lambda t, x, m: t.zeros_like(3),
    "fill_ with a vector": lambda t, x, m: x.detach().fill_(x[0].detach()),
    "masked_fill with a vector": lambda t, x, m: x.masked_fill(m, x[0]),
    "embedding of cubes": lambda t, x, m: t.nn.functional.embedding(m.long(), x[None]),
    "diag_embed": lambda t, x, m: t.diag_embed(x, 0, 0, 0),
    "hardtanh": lambda t, x, m: t.nn.functional.hardtanh(x, 2.0, 1.0),
    "bilinear by a matrix": lambda t, x, m: t.nn.functional.bilinear(x, x, x),
    "celu": lambda t, x, m: t.nn.functional.celu(x, 0.0),
    "rrelu": lambda t, x, m: t.nn.functional.rrelu(x, 2.0, 1.0),
    "strides of conv3d": lambda t, x, m: t.nn.functional.conv3d(
        x[None, None, None], x[None, None, None, :1, :1], padding="same", stride=2
    ),
    "negative tolerance": lambda t, x, m: t.isclose(x, x, rtol=-1.0),
    "more dimensions than there are": lambda t, x, m: t.tensordot(x, x.t(), dims=3),
    "dimensions twice": lambda t, x, m: t.tensordot(x, x.t(), dims=([1, 1], [0, 0])),
    "pool to negative sizes": lambda t, x, m: t.nn.functional.adaptive_avg_pool2d(x[None], -1),
    "resize whole numbers": lambda t, x, m: t.nn.functional.interpolate(m[None, None].long(), 5, mode="bilinear"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls_say_what_is_right(torch, name):
    with pytest.raises(Exception):  # noqa: B017  # of any class
        WRONG[name](torch, torch.from_numpy(X.copy()).requires_grad_(), torch.from_numpy(FLAGS))
    x, mask = graphc.tensor(X).requires_grad_(), graphc.tensor(FLAGS)
    with pytest.raises(GraphcError):
        WRONG[name](graphc, x, mask)
    if name not in (
        "negative deviations",
        "improbable",
        "class out of range",
    ):  # Compiled code has no values to look at.
        with pytest.raises(GraphcError):
            graphc.compile(lambda a, b: WRONG[name](graphc, a, b))(x, mask)
