"""The time of a data parallel step on paper."""

import pytest

from benchmarks.cluster.networks import Link, Network
from benchmarks.cluster.step_model import Assumed, BucketTimes, Plan, plain, scale, sharded, slower

PLAN = Plan("net", 32, 10.0, (BucketTimes(100, 4.0, 8.0), BucketTimes(300, 6.0, 8.5), BucketTimes(400, 8.0, 9.0)))
"""Eight seconds of forward and backward pass, two of updates."""


def test_reductions_that_end_early_cost_nothing() -> None:
    step = plain(PLAN, lambda nbytes: nbytes / 1000)
    assert step.seconds == 10 and step.exposed == 0 and step.communication == pytest.approx(0.8)
    assert [s[1] for s in step.spans] == [4, 6, 8]


def test_one_reduction_begins_when_the_one_before_has_ended() -> None:
    step = plain(PLAN, lambda nbytes: nbytes / 100)
    assert [s[1:] for s in step.spans] == [(4, 5), (6, 9), (9, 13)]
    assert step.seconds == 10 + (13 - 9), "the last one is asked for at 9 and ends at 13"
    assert step.exposed == 4


def test_what_waits_for_the_first_bucket_is_late_for_the_others_as_well() -> None:
    plan = Plan("net", 1, 10.0, (BucketTimes(1, 4.0, 8.0), BucketTimes(1, 8.0, 9.0)))
    step = plain(plan, lambda nbytes: 5.0)
    assert [s[1:] for s in step.spans] == [(4, 9), (9, 14)]
    assert step.exposed == 5


def test_without_overlap_all_reductions_are_added() -> None:
    step = plain(PLAN, lambda nbytes: nbytes / 100, overlap=0.0)
    assert step.seconds == pytest.approx(18) and step.exposed == pytest.approx(8)
    assert (
        step.efficiency(PLAN)
        == pytest.approx(PLAN.seconds / (PLAN.seconds + step.communication))
        == pytest.approx(10 / 18)
    )


def test_a_step_without_buckets_is_as_long_as_ever() -> None:
    plan = Plan("net", 1, 3.0, ())
    assert plain(plan, lambda n: 1.0).seconds == sharded(plan, lambda n: 1.0, 4).seconds == 3


def test_a_sharded_step_updates_a_part_and_gathers_behind() -> None:
    free = sharded(PLAN, lambda nbytes: 0.0, 4)
    assert free.seconds == pytest.approx(8 + 2 / 4), "a quarter of the update"
    step = sharded(PLAN, lambda nbytes: nbytes / 1000, 4)
    # The last sum arrives at 8.4; then the shards travel one after the other, each already updated.
    assert step.spans[2][1:] == (pytest.approx(8.0), pytest.approx(8.4))
    assert step.seconds == pytest.approx(8.4 + 0.1 + 0.3 + 0.4)
    assert len(step.spans) == 6 and step.communication == pytest.approx(1.6)


@pytest.mark.parametrize("overlap", [0.0, 0.5, 1.0])
def test_more_ranks_are_never_faster_and_never_beyond_the_sum(overlap: float) -> None:
    network = Network(Link(1e-5, 1e4), Link(1e-3, 1e3), 8)
    rows = [r for r in scale(PLAN, Assumed(network, (8, 64, 512, 4096), overlap)) if r.kind == "plain"]
    times = [r.seconds for r in rows]
    assert times == sorted(times)
    for row in rows:
        assert PLAN.seconds <= row.seconds <= PLAN.seconds + row.communication + 1e-9
        assert row.efficiency >= PLAN.seconds / (PLAN.seconds + row.communication) - 1e-9


def test_the_better_of_ring_and_tree_is_taken() -> None:
    slow = Network(Link(0, 1e12), Link(1.0, 1e12), 1)
    assert {r.how for r in scale(PLAN, Assumed(slow, (1024,)))} == {"tree"}
    narrow = Network(Link(0, 1), Link(1e-9, 10.0), 1)
    assert {r.how for r in scale(PLAN, Assumed(narrow, (3,)))} == {"ring"}


def test_a_rank_twice_as_fast_has_half_the_plan() -> None:
    assert slower(PLAN, 0.5).buckets[0] == BucketTimes(100, 2.0, 4.0) and slower(PLAN, 0.5).seconds == 5
    network = Network(Link(0, 1e9), Link(0, 1e9))
    (first, _) = scale(PLAN, Assumed(network, (8,), speed=2.0))
    assert first.seconds == pytest.approx(5)
