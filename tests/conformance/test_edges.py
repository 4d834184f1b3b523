"""Operands at the edges of functions: infinities in windows, no dimensions, nothing in a batch, whole numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.compare import Case, agree, cases, check, normal, whole


def broken(*shape: int) -> np.ndarray:
    """Numbers some of which are infinite or not a number."""
    x = normal(*shape)
    return np.where(x > 1.2, np.inf, np.where(x < -1.5, np.nan, np.where(x < -1.1, -np.inf, x)))


VECTOR, IMAGE, VOLUME = broken(2, 3, 7), broken(2, 3, 7, 9), broken(2, 2, 5, 6, 7)
NONE = [normal(0, 3, *(5, 4, 6)[:rank]) for rank in (1, 2, 3)]
COUNTS = [whole(9, 2, 3, *(6, 5, 4)[:rank], low=-9) for rank in (1, 2, 3)]


@pytest.mark.parametrize(
    "case",
    cases(
        (
            "one infinity",
            lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, (1, 5)),
            (np.float64([[[1, np.inf, 2]]]),),
        ),
        ("means of parts, 1d", lambda t, x: t.nn.functional.adaptive_avg_pool1d(x, 3), (VECTOR,)),
        ("means of more parts, 1d", lambda t, x: t.nn.functional.adaptive_avg_pool1d(x, 9), (VECTOR,)),
        ("means of parts, 2d", lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, (3, 4)), (IMAGE,)),
        ("means of whole rows", lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, (None, 4)), (IMAGE,)),
        ("means of parts, 3d", lambda t, x: t.nn.functional.adaptive_avg_pool3d(x, (2, 4, 3)), (VOLUME,)),
        ("means of equal parts, 3d", lambda t, x: t.nn.functional.adaptive_avg_pool3d(x, (5, 3, 1)), (VOLUME,)),
        ("means by area", lambda t, x: t.nn.functional.interpolate(x, (5, 4), mode="area"), (IMAGE,)),
        ("means of windows", lambda t, x: t.nn.functional.avg_pool2d(x, 3, 2, 1, True, False), (IMAGE,)),
        ("means of windows, 3d", lambda t, x: t.nn.functional.avg_pool3d(x, 3, 2, 1, True), (VOLUME,)),
        ("maxima of parts", lambda t, x: t.nn.functional.adaptive_max_pool2d(x, (3, 4), True), (IMAGE,), 1e-9, 1),
        ("maxima of parts, 3d", lambda t, x: t.nn.functional.adaptive_max_pool3d(x, (3, 4, 2)), (VOLUME,), 1e-9, 1),
        ("maxima of equal parts", lambda t, x: t.nn.functional.adaptive_max_pool2d(x, (7, 3), True), (IMAGE,), 1e-9, 1),
        ("the last NaN", lambda t, x: t.nn.functional.max_pool2d(x, 3, 2, 1, return_indices=True), (IMAGE,), 1e-9, 1),
        ("the last NaN of many", lambda t, x: t.nn.functional.max_pool2d(x, 5, return_indices=True), (IMAGE,), 1e-9, 1),
        (
            "maxima of ties",
            lambda t, x: t.nn.functional.adaptive_max_pool1d(x, 3),
            (np.float64([[[1, 2, 2, 3, 3, 3, 1]]]),),
        ),
    ),
)
def test_infinities_and_nan_stay_in_their_windows(case):
    check(case)


def _both_pools(rank):
    def pools(t, x):
        f = t.nn.functional
        named = [getattr(f, f"{kind}_pool{rank}d") for kind in ("avg", "max", "adaptive_avg", "adaptive_max")]
        return [pool(x, 2) for pool in named]

    return pools


@pytest.mark.parametrize(
    "case",
    cases(
        *((f"pools, {rank}d", _both_pools(rank), (NONE[rank - 1],)) for rank in (1, 2, 3)),
        ("means of parts", lambda t, x: t.nn.functional.adaptive_avg_pool3d(x, (2, 3, 5)), (NONE[2],)),
        ("positions", lambda t, x: t.nn.functional.adaptive_max_pool3d(x, 3, True), (NONE[2],), 1e-9, 1),
        ("norms of windows", lambda t, x: t.nn.functional.lp_pool3d(x, 2, 2), (NONE[2],)),
        (
            "windows at random places",
            lambda t, x, s: t.nn.functional.fractional_max_pool3d(x, 2, 2, _random_samples=s.detach()),
            (NONE[2], np.zeros((0, 3, 3))),
            1e-9,
            1,
        ),
        ("to nothing", lambda t, x: t.nn.functional.adaptive_max_pool2d(x, (0, 2)), (normal(2, 3, 4, 5),), 1e-9, 0),
        ("to no part", lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, (0, 2)), (normal(2, 3, 4, 5),), 1e-9, 0),
        (
            "batch norm",
            lambda t, x, m, v, w: [t.nn.functional.batch_norm(x, m.detach(), v.detach(), w, training=True), m, v],
            (NONE[1], normal(3), normal(3) ** 2, normal(3, seed=1)),
            1e-9,
            1,
        ),
    ),
)
def test_an_empty_batch_is_pooled(case):
    check(case)


@pytest.mark.parametrize(
    "case",
    cases(
        *(
            (f"{rank}d, {options}", lambda t, x, r=rank, o=options: _pool(t, r)(x, 3, 2, **o), (COUNTS[rank - 1],))
            for rank in (1, 2, 3)
            for options in (
                {},
                {"padding": 1},
                {"padding": 1, "count_include_pad": False},
                {"padding": 1, "ceil_mode": True},
                *([{"divisor_override": 4}] if rank > 1 else []),
            )
        )
    ),
)
def test_means_of_whole_numbers_are_rounded_towards_zero(case):
    check(case)


def _pool(t, rank):
    return getattr(t.nn.functional, f"avg_pool{rank}d")


SCALARS = (normal(seed=1), normal(seed=2))
FOLDS = ("sum", "mean", "prod", "amax", "amin")
HERE = np.array(0)


def _scattered(t, x, index, src):
    folded = [x.scatter_reduce(0, index, src, fold, include_self=own) for fold in FOLDS for own in (True, False)]
    return [x.scatter(0, index, src), x.scatter_add(0, index, src), x.scatter(-1, index, 7.0), *folded]


def _entries(t, x, index, src):
    changed = x * 1
    changed.index_add_(0, index, src, alpha=2)
    copied = t.index_copy(x, 0, index, src)
    return [t.index_add(x, 0, index, src), copied, x.index_fill(0, index, 7.0), t.index_select(x, 0, index), changed]


@pytest.mark.parametrize(
    "case",
    cases(
        ("cosine", lambda t, x, y: t.nn.functional.cosine_similarity(x, y, dim=0), SCALARS),
        *(
            (f"scatter {x.shape} at {i.shape}", _scattered, (x, i, normal(*i.shape, seed=3)), 1e-9, 1)
            for x in (SCALARS[0], normal(1), normal(3))
            for i in (HERE, HERE.reshape(1))
        ),
        (
            "scatter of a longer vector",
            lambda t, x, i, s: x.scatter(0, i, s.detach()),
            (normal(3), HERE, normal(2)),
            1e-9,
            1,
        ),
        ("gather", lambda t, x, i: [x.gather(0, i), x.gather(-1, i)], (SCALARS[0], HERE)),
        ("gather a vector", lambda t, x, i: x.gather(0, i), (SCALARS[0], np.zeros(3, np.int64))),
        ("gather nothing", lambda t, x, i: x.gather(0, i), (normal(2, 3), np.zeros(0, np.int64)), 1e-9, 0),
        ("entries", _entries, (SCALARS[0], HERE, SCALARS[1]), 1e-9, 1),
        ("entries of a vector", _entries, (normal(3), HERE, normal(1)), 1e-9, 1),
        ("entries by a vector", _entries, (SCALARS[0], HERE.reshape(1), SCALARS[1]), 1e-9, 1),
        ("entries of a matrix", lambda t, x, i: t.index_select(x, 1, i), (normal(2, 3), HERE)),
        ("a number for an entry", lambda t, x, i, s: x.index_copy(0, i, s), (normal(3), HERE, SCALARS[1]), 1e-9, 1),
        ("masked scatter", lambda t, x, m, s: x.masked_scatter(m, s), (SCALARS[0], np.array(True), normal(3)), 1e-9, 1),
        ("cosine, last", lambda t, x, y: t.nn.functional.cosine_similarity(x, y, dim=-1), SCALARS),
    ),
)
def test_tensors_without_dimensions_are_taken(case):
    check(case)


def _seen() -> np.ndarray:
    """[heads, queries, keys]: the second query sees no key."""
    mask = whole(2, 2, 3, 5) > 0
    mask[:, 1], mask[:, 0, 0] = False, True
    return mask


HEADS = (normal(2, 2, 3, 4), normal(2, 2, 5, 4, seed=1), normal(2, 2, 5, 4, seed=2))
ADDED = np.where(_seen(), 0.3, -np.inf)


def _attention(t, *tensors):
    return t.nn.functional.scaled_dot_product_attention(*tensors)


@pytest.mark.parametrize(
    "case",
    cases(
        ("boolean", _attention, (*HEADS, _seen()), 1e-9, 1),
        ("boolean, per image", _attention, (*HEADS, np.stack([_seen()] * 2)), 1e-9, 1),
        ("boolean, per query", _attention, (*HEADS, np.array([[True], [False], [True]])), 1e-9, 1),
        ("boolean, without heads", _attention, (*(x[0, 0] for x in HEADS), _seen()[0]), 1e-9, 1),
        ("boolean, without a batch", _attention, (*(x[0] for x in HEADS), _seen()), 1e-9, 1),
        ("added", _attention, (*HEADS, ADDED), 1e-9, 1),
        ("added, with NaN", _attention, (*HEADS, np.where(_seen(), np.nan, 0.0)), 1e-9, 1),
        ("all of it", _attention, (*HEADS, np.zeros((3, 5), bool)), 1e-9, 1),
        ("no keys", _attention, (HEADS[0], HEADS[1][:, :, :0], HEADS[2][:, :, :0]), 1e-9, 1),
    ),
)
def test_attention_without_keys_gives_zeros(case):
    check(case)


BYTES = whole(256, 2, 3, 5, 7).astype(np.uint8)


@pytest.mark.parametrize(
    "case",
    cases(
        *(
            (
                f"{mode} to {size}{', corners' * corners}",
                lambda t, x, m=mode, s=size, c=corners: t.nn.functional.interpolate(x, s, mode=m, align_corners=c),
                (BYTES,),
            )
            for mode in ("bilinear", "bicubic")
            for size in ((9, 4), (2, 13), (5, 3))
            for corners in (False, True)
        ),
        ("by a factor", lambda t, x: t.nn.functional.interpolate(x, scale_factor=1.7, mode="bicubic"), (BYTES,)),
    ),
)
def test_images_of_bytes_are_resized(case):
    check(case)


LARGE = normal(1, 1, 345, 456).astype(np.float32)
POINTS = np.random.default_rng(0).uniform(-1.1, 1.1, (1, 60, 50, 2)).astype(np.float32)


def _resize(t, x, **options):
    return t.nn.functional.interpolate(x, **options)


def _sample(t, x, points, padding_mode, corners):
    return t.nn.functional.grid_sample(x, points, "bilinear", padding_mode, corners)


@pytest.mark.parametrize(
    "case",
    cases(
        ("linear, corners", lambda t, x: t.nn.functional.upsample_bilinear(x, (391, 411)), (LARGE,), 1e-6, 1),
        ("linear", lambda t, x: _resize(t, x, size=(691, 111), mode="bilinear"), (LARGE,), 1e-6, 1),
        ("linear, by a factor", lambda t, x: _resize(t, x, scale_factor=0.7, mode="bilinear"), (LARGE,), 1e-6, 1),
        ("cubic", lambda t, x: _resize(t, x, size=(223, 229), mode="bicubic"), (LARGE,), 1e-6, 1),
        ("cubic, corners", lambda t, x: _resize(t, x, size=99, mode="bicubic", align_corners=True), (LARGE,), 1e-6, 1),
        *(
            (
                f"at points, {padding}{', corners' * corners}",
                lambda t, x, g, p=padding, c=corners: _sample(t, x, g, p, c),
                (LARGE, POINTS),
                1e-6,
                1,
            )
            for padding in ("zeros", "border", "reflection")
            for corners in (False, True)
        ),
    ),
)
def test_positions_in_large_images_are_rounded_as_in_pytorch(case):
    check(case)


EXACT = np.array([-1, 1, 0, -3, 3, 1.5, -1.5, 5.25, -2, np.nan, np.inf, -np.inf, 1e30])
EXACT_POINTS = np.stack(np.meshgrid(EXACT, EXACT), -1)[None]


@pytest.mark.parametrize(
    "case",
    cases(
        *(
            (
                f"{padding}{', corners' * corners}",
                lambda t, x, g, p=padding, c=corners: _sample(t, x, g, p, c),
                (normal(1, 2, 4, 5), EXACT_POINTS[:, :9, :9]),
                1e-9,
                1,
            )
            for padding in ("zeros", "border", "reflection")
            for corners in (False, True)
        ),
        *(
            (f"{p}, NaN", lambda t, x, g, p=p: _sample(t, x, g, p, False), (normal(1, 2, 4, 5), EXACT_POINTS), 1e-9, 0)
            for p in ("zeros", "border")
        ),
    ),
)
def test_points_on_the_border_and_beyond(case):
    check(case)


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 2)])
def test_a_mask_without_dimensions_selects_all_or_nothing(kept, shape):
    def select(t, x, m):
        return t.masked_select(x, m)

    agree(Case("", select, ()), (normal(*shape), np.array(kept)), 1)


BITS, MORE = whole(2, 3, 4) > 0, whole(2, 3, 4, seed=3) > 0
ROWS, ENTRIES = whole(3, 3, 4), np.array([2, 0, 2])


@pytest.mark.parametrize(
    "case",
    cases(
        ("add", lambda t, x, i, s: x.scatter_add(0, i, s), (BITS, ROWS, MORE)),
        ("add entries", lambda t, x, i, s: t.index_add(x, 0, i, s, alpha=3), (BITS, ENTRIES, MORE)),
        ("add entries in place", lambda t, x, i, s: x.clone().index_add_(0, i, s), (BITS, ENTRIES, MORE)),
        ("add by indices", lambda t, x, i, s: x.index_put((i,), s, accumulate=True), (BITS, ENTRIES, MORE)),
        *(
            (
                f"{fold}, {own}",
                lambda t, x, i, s, f=fold, o=own: x.scatter_reduce(0, i, s, f, include_self=o),
                (BITS, ROWS, MORE),
            )
            for fold in ("sum", "prod", "amax", "amin")
            for own in (True, False)
        ),
        (
            "by words",
            lambda t, x, i, s: [x.scatter(0, i, s, reduce=r) for r in ("add", "multiply")],
            (BITS, ROWS, MORE),
        ),
    ),
)
def test_booleans_are_scattered(case):
    check(case)


@pytest.mark.parametrize(
    "case",
    cases(
        (
            "a larger mask",
            lambda t, x, m, s: x.masked_scatter(m, s),
            (normal(3), whole(2, 2, 3) > 0, normal(9)),
            1e-9,
            1,
        ),
        (
            "a mask of rows",
            lambda t, x, m, s: x.masked_scatter(m, s),
            (normal(2, 3), whole(2, 2, 1) > 0, normal(9)),
            1e-9,
            1,
        ),
        ("nothing", lambda t, x, m, s: x.masked_scatter(m, s), (normal(0, 3), whole(2, 1, 3) > 0, normal(9)), 1e-9, 0),
        ("a larger mask to fill", lambda t, x, m: x.masked_fill(m, 2.0), (normal(3), whole(2, 2, 3) > 0)),
        ("whole numbers", lambda t, x, m: x.masked_fill(m, 2.7), (whole(9, 3), whole(2, 3) > 0)),
        ("bytes", lambda t, x, m: x.masked_fill(m, -9), (whole(9, 3).astype(np.uint8), whole(2, 3) > 0)),
        (
            "booleans",
            lambda t, x, m: [x.masked_fill(m, v) for v in (10, 0, 0.5, float("nan"))],
            (whole(2, 3) > 0, MORE[0, :3]),
        ),
    ),
)
def test_masks_broadcast_and_values_take_the_type_of_the_tensor(case):
    check(case)
