"""Prepacked weights that programs share: made once for all that need the same layout, and never stale."""

from __future__ import annotations

import gc as collector
import weakref
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.calls import prepacked_store
from graphc.calls.prepacked_store import Prepacked, Prepacking, WeightVersion, find, keep
from graphc.runtime.call import Executable


def perceptron() -> nn.Module:
    gc.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64)).eval()


def batch(rows: int) -> gc.Tensor:
    return gc.from_numpy(np.random.default_rng(rows).standard_normal((rows, 64)).astype(np.float32))


def arrays_of(compiled: Any) -> list[set[int]]:
    return [{id(a) for a in v.prepacked()} for v in compiled.variants]


@pytest.mark.parametrize("functions", [1, 2])
def test_programs_of_other_batch_sizes_share_what_is_packed_the_same(functions: int):
    net = perceptron()
    first = gc.compile(net)
    second = first if functions == 1 else gc.compile(net)
    with gc.no_grad():
        for fast, rows in ((first, 64), (second, 128)):
            assert fast(batch(rows)).allclose(net(batch(rows)), atol=1e-4)
    results = [*arrays_of(first), *(arrays_of(second) if functions == 2 else [])]
    assert len(results) == 2 and results[0] and results[0] == results[1]


def test_shared_arrays_are_made_once_for_each_version_of_the_weights(monkeypatch: pytest.MonkeyPatch):
    net = perceptron()
    fast = gc.compile(net)
    runs = 0
    run = Prepacking.run

    def counted(self: Prepacking, *args: Any) -> list[np.ndarray]:
        nonlocal runs
        runs += 1
        return run(self, *args)

    monkeypatch.setattr(Prepacking, "run", counted)
    with gc.no_grad():
        for version in range(3):
            for rows in (64, 128, 64, 192):
                assert fast(batch(rows)).allclose(net(batch(rows)), atol=1e-4)
            assert runs == version + 1
            net[0].weight.mul_(1.5)


def test_a_weight_that_is_replaced_shares_nothing_with_the_old_one():
    net = perceptron()
    fast = gc.compile(net)
    with gc.no_grad():
        fast(batch(64))
        before = arrays_of(fast)[0]
        net[0].weight.data = net[0].weight.data * 2
        assert fast(batch(128)).allclose(net(batch(128)), atol=1e-4)
        after = next(result for result in arrays_of(fast) if result != before)
        assert len(before & after) == len(before) - 1


def test_equal_layers_of_two_models_share_nothing():
    nets = [perceptron(), perceptron()]
    results = []
    with gc.no_grad():
        for net in nets:
            fast = gc.compile(net)
            fast(batch(64))
            results.append((fast, arrays_of(fast)[0]))
    assert not results[0][1] & results[1][1]


def test_memory_that_was_given_out_is_not_shared():
    weight, counter = np.ones(3), [4, 1]
    source = WeightVersion(weight, counter, [4, 1])
    made = Prepacked(np.ones(3), [source])
    assert keep("recipe", made) is made
    assert find("recipe", [source]) is None


def test_a_store_knows_recipe_arrays_counters_and_versions():
    weight, counter = np.ones(3), [4]
    source = WeightVersion(weight, counter, [4])
    made = keep("recipe", Prepacked(np.ones(3), [source]))
    again = keep("recipe", Prepacked(np.ones(3), [source]))
    assert again is made and find("recipe", [WeightVersion(weight, counter, [4])]) is made
    assert find("other", [source]) is None and find("", [source]) is None
    assert find("recipe", [WeightVersion(weight.copy(), counter, [4])]) is None
    assert find("recipe", [WeightVersion(weight, [4], [4])]) is None
    assert find("recipe", [WeightVersion(weight, counter, [5])]) is None


def test_what_no_program_keeps_is_freed():
    net = perceptron()
    fast = gc.compile(net)
    with gc.no_grad():
        fast(batch(64))
        fast(batch(128))
    array = weakref.ref(fast.variants[0].prepacked()[0])
    keys = set(prepacked_store._cache)
    del fast
    collector.collect()
    assert array() is None and len(set(prepacked_store._cache)) < len(keys)


def test_programs_from_the_cache_on_disk_share_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Any):
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path / "cache"))
    net = perceptron()
    first = gc.compile(net)
    with gc.no_grad():
        first(batch(64))
        second = gc.compile(net)
        second(batch(64))
    assert isinstance(second.variants[0].program, Executable)
    assert arrays_of(first)[0] and arrays_of(first) == arrays_of(second)
