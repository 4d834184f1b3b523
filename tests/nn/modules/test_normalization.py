"""Normalisation layers: PyTorch's numbers in training and evaluation, running statistics, old files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
import graphc as gc
from graphc import nn
from graphc.distributed import threads
from graphc.errors import ArgumentError, AttributeValueError, ShapeError
from tests.nn.compare import floats, modules_agree

OPTIONS = [{}, {"affine": False}, {"momentum": None}, {"track_running_stats": False}, {"eps": 0.1, "momentum": 0.5}]


def in_both_modes(ours: nn.Module, theirs: object, *shape: int) -> None:
    """Three steps in training, then evaluation, each compared."""
    for step in range(3):
        modules_agree(ours, theirs, floats(*shape, seed=step), rtol=1e-7)
        ours.zero_grad()
        theirs.zero_grad()
    ours.eval()
    theirs.eval()
    modules_agree(ours, theirs, floats(*shape, seed=9), rtol=1e-7)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(("name", "shape"), [("1d", (4, 3)), ("1d", (4, 3, 5)), ("2d", (2, 3, 4, 5))])
def test_batch_norm_as_torch(torch, options: dict, name: str, shape: tuple[int, ...]):
    ours, theirs = (getattr(m, f"BatchNorm{name}")(3, **options) for m in (nn, torch.nn))
    in_both_modes(ours, theirs, *shape)


@pytest.mark.parametrize("options", [{}, {"affine": True, "track_running_stats": True}])
@pytest.mark.parametrize(("name", "shape"), [("1d", (4, 3, 5)), ("2d", (2, 3, 4, 5)), ("2d", (3, 4, 5))])
def test_instance_norm_as_torch(torch, options: dict, name: str, shape: tuple[int, ...]):
    ours, theirs = (getattr(m, f"InstanceNorm{name}")(3, **options) for m in (nn, torch.nn))
    if options:
        # PyTorch counts no batches in instance normalisation either.
        assert ours.num_batches_tracked.item() == 0
    in_both_modes(ours, theirs, *shape)


def test_evaluation_leaves_running_statistics():
    layer = nn.BatchNorm2d(3).eval()
    layer(graphc.randn(2, 3, 4, 4))
    np.testing.assert_array_equal(layer.running_mean.numpy(), np.zeros(3))
    assert layer.num_batches_tracked.item() == 0


def test_reset():
    layer = nn.BatchNorm1d(3)
    layer(graphc.randn(8, 3) + 5)
    assert layer.num_batches_tracked.item() == 1 and (layer.running_mean.numpy() > 0.1).all()
    layer.reset_running_stats()
    np.testing.assert_array_equal(layer.running_mean.numpy(), np.zeros(3))
    np.testing.assert_array_equal(layer.running_var.numpy(), np.ones(3))
    assert layer.num_batches_tracked.item() == 0


def test_files_of_version_1_have_no_count():
    layer = nn.BatchNorm2d(3)
    state = {k: v for k, v in layer.state_dict().items() if k != "num_batches_tracked"}
    assert not layer.load_state_dict(state).missing_keys
    newer = layer.state_dict()
    del newer["num_batches_tracked"]
    assert newer._metadata[""] == {"version": 2}
    assert layer.load_state_dict(newer, strict=False).missing_keys == ["num_batches_tracked"]


def test_text():
    expected = "BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)"
    assert repr(nn.BatchNorm2d(3)) == expected
    assert repr(nn.LayerNorm(3)) == "LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=True)"
    assert repr(nn.RMSNorm((2, 3))) == "RMSNorm((2, 3), eps=None, elementwise_affine=True)"
    assert repr(nn.GroupNorm(2, 4)) == "GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)"


def test_errors():
    with pytest.raises(ShapeError, match=r"BatchNorm2d: the input \[2, 3\] has 2 dimensions, expected 4"):
        nn.BatchNorm2d(3)(graphc.zeros(2, 3))
    with pytest.raises(ShapeError, match="expected 2 or 3"):
        nn.BatchNorm1d(3)(graphc.zeros(2, 3, 4, 5))
    with pytest.raises(AttributeValueError, match="3 groups do not divide 4 channels"):
        nn.GroupNorm(3, 4)
    with pytest.raises(ShapeError, match="InstanceNorm2d"):
        nn.InstanceNorm2d(3)(graphc.zeros(2, 3))


SHAPES = [(12, 3), (6, 3, 4), (6, 3, 2, 5), (6, 3, 2, 2, 2)]
CLASSES = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}


def numbers(shape: tuple[int, ...], seed: int = 0, mean: float = 0.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(mean, 1.0, shape)


def layer(kind: Any = nn.SyncBatchNorm, **options: Any) -> Any:
    norm = kind(3, dtype=gc.float64, **options)
    if norm.weight is not None:
        with gc.no_grad():
            norm.weight.copy_(gc.tensor(numbers((3,), 5)))
            norm.bias.copy_(gc.tensor(numbers((3,), 6)))
    return norm


def two_passes(bn: Any, x: np.ndarray, g: np.ndarray, run: Any = None) -> list[np.ndarray]:
    """Output, gradients and running statistics behind two passes."""
    results: list[np.ndarray] = []
    for scale in (1.0, 3.0):
        batch = gc.tensor(x * scale, requires_grad=True)
        y = (run or bn)(batch)
        y.backward(gc.tensor(g))
        results += [y.detach().numpy(), batch.grad.numpy()]
    return [*results, *(p.grad.numpy() for p in bn.parameters()), *(b.numpy() for b in bn.buffers())]


def together(shards: list[list[np.ndarray]], bn: Any) -> list[np.ndarray]:
    """Return the results of one process: concatenated rows, summed gradients of parameters."""
    trained = len([*bn.parameters()])
    joined = [np.concatenate(each) for each in zip(*(p[:4] for p in shards), strict=True)]
    added = [sum(each) for each in zip(*(p[4 : 4 + trained] for p in shards), strict=True)]
    return [*joined, *added, *shards[-1][4 + trained :]]


@pytest.mark.parametrize(
    "shape, compiled", [*((s, False) for s in SHAPES), (SHAPES[0], True), (SHAPES[2], True)], ids=str
)
def test_parts_of_a_batch_are_normalised_as_the_whole(shape: tuple[int, ...], compiled: bool):
    x, g = numbers(shape, mean=50.0), numbers(shape, 1)
    expected = two_passes(layer(CLASSES[len(shape)]), x, g)

    def part(rank: int) -> list[np.ndarray]:
        bn = layer()
        rows = np.array_split(np.arange(shape[0]), [1, shape[0] // 2])[rank]
        return two_passes(bn, x[rows], g[rows], gc.compile(bn) if compiled else None)

    result = together(threads.run(3, part), layer())
    for a, b in zip(result, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def test_a_process_may_have_no_rows():
    x, g = numbers((5, 3)), numbers((5, 3), 1)
    expected = two_passes(layer(nn.BatchNorm1d), x, g)
    shards = threads.run(2, lambda rank: two_passes(layer(), x[5 * rank :], g[5 * rank :]))
    for a, b in zip(together(shards, layer()), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("options", [{"momentum": None}, {"affine": False}, {"track_running_stats": False}], ids=str)
def test_options_are_those_of_batch_normalisation(options: dict[str, Any]):
    x, g = numbers((8, 3)), numbers((8, 3), 1)
    expected = two_passes(layer(nn.BatchNorm1d, **options), x, g)
    shards = threads.run(2, lambda rank: two_passes(layer(**options), x[4 * rank :][:4], g[4 * rank :][:4]))
    for a, b in zip(together(shards, layer(**options)), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def test_narrow_numbers_are_computed_in_f32():
    x = gc.tensor(numbers((8, 3)), dtype=gc.float16)
    shards = threads.run(2, lambda rank: nn.SyncBatchNorm(3)(x[4 * rank :][:4]).float().detach().numpy())
    expected = nn.BatchNorm1d(3)(x).float().detach().numpy()
    np.testing.assert_allclose(np.concatenate(shards), expected, atol=2e-3)


def test_evaluation_sends_nothing():
    def alone(rank: int) -> Any:
        return nn.SyncBatchNorm(3).eval()(gc.ones(2, 3)).tolist() if rank else None

    assert threads.run(2, alone)[1] == nn.BatchNorm1d(3).eval()(gc.ones(2, 3)).tolist()


def test_one_process_alone_is_batch_normalisation():
    x, g = numbers((8, 3)), numbers((8, 3), 1)
    for a, b in zip(two_passes(layer(), x, g), two_passes(layer(nn.BatchNorm1d), x, g), strict=True):
        np.testing.assert_array_equal(a, b)


def test_models_are_converted_with_their_parameters():
    net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.BatchNorm1d(3, eps=0.1), nn.InstanceNorm1d(3))).eval()
    before = [*net.parameters(), *net.buffers()]
    assert nn.SyncBatchNorm.convert_sync_batchnorm(net) is net
    converted = net[1][0]
    assert type(converted) is nn.SyncBatchNorm and converted.eps == 0.1 and not converted.training
    assert type(net[1][1]) is nn.InstanceNorm1d
    assert all(a is b for a, b in zip(before, [*net.parameters(), *net.buffers()], strict=True))
    assert type(nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm2d(3))) is nn.SyncBatchNorm
    assert nn.SyncBatchNorm.convert_sync_batchnorm(converted) is converted


def test_another_group_is_refused():
    with pytest.raises(ArgumentError, match="all processes are one group"):
        nn.SyncBatchNorm(3, process_group="half of them")
