"""Models of collectives: times of rings and trees, and links fitted to measurements."""

import numpy as np
import pytest

from benchmarks.cluster.networks import Link, Network, errors, fit, interpolated, sizes_until

LINK = Link(latency=2e-6, bandwidth=1e9)
FAST = Link(latency=1e-7, bandwidth=1e10)
B = 1 << 20


@pytest.mark.parametrize("n", [2, 3, 4, 8, 4096])
def test_a_ring_sends_all_but_a_part_twice(n: int) -> None:
    seconds = Network(FAST, LINK).all_reduce(n, "ring")(B)
    assert seconds == pytest.approx(2 * (n - 1) * LINK.latency + 2 * (n - 1) / n * B / LINK.bandwidth)


@pytest.mark.parametrize(("n", "rounds"), [(2, 1), (4, 2), (8, 3), (4096, 12)])
def test_a_tree_sends_the_same_bytes_in_fewer_rounds(n: int, rounds: int) -> None:
    seconds = Network(FAST, LINK).all_reduce(n, "tree")(B)
    assert seconds == pytest.approx(2 * rounds * LINK.latency + 2 * (n - 1) / n * B / LINK.bandwidth)


def test_a_tree_of_three_hands_all_of_one_rank_to_a_neighbour() -> None:
    seconds = Network(FAST, LINK).all_reduce(3, "tree")(B)
    assert seconds == pytest.approx(2 * (2 * LINK.latency + (1 / 2 + 1) * B / LINK.bandwidth))


def test_halves_are_half_of_an_all_reduce() -> None:
    network = Network(FAST, LINK, 4)
    for algorithm in ("ring", "tree"):
        assert 2 * network.half(32, algorithm)(B) == pytest.approx(network.all_reduce(32, algorithm)(B))


def test_one_rank_sends_nothing() -> None:
    assert Network(FAST, LINK, 8).all_reduce(1)(B) == 0


def test_ranks_of_one_machine_use_its_own_link() -> None:
    assert Network(FAST, LINK, 8).all_reduce(8)(B) == Network(LINK, FAST).all_reduce(8)(B)


def test_between_machines_all_bytes_pass_once_and_within_them_once() -> None:
    seconds = Network(FAST, LINK, 8).all_reduce(32, "ring")(B)
    inside = 2 * 7 * FAST.latency + 2 * 7 / 8 * B / FAST.bandwidth
    between = 2 * 3 * LINK.latency + 2 * 3 / 4 * B / LINK.bandwidth
    assert seconds == pytest.approx(inside + between)


def test_a_link_of_which_ranks_take_turns() -> None:
    assert LINK.shared_by(2) == Link(4e-6, 5e8)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_a_fit_finds_the_link_again(ranks: int) -> None:
    cost = Network(LINK, LINK, ranks).all_reduce(ranks)
    times = {n: cost(n) for n in sizes_until(64 << 20)}
    link = fit(times, ranks)
    assert (link.latency, link.bandwidth) == (pytest.approx(2e-6), pytest.approx(1e9))
    assert link.cached == np.inf
    assert max(map(abs, errors(times, Network(link, link, ranks).all_reduce(ranks)).values())) < 1e-9


def test_a_fit_finds_where_copies_become_slower() -> None:
    link = Link(2e-6, 4e9, cached=2 << 20, beyond=1e9)
    cost = Network(link, link, 2).all_reduce(2)
    times = {n: cost(n) for n in sizes_until(64 << 20)}
    fitted = fit(times, 2)
    assert (fitted.latency, fitted.bandwidth, fitted.beyond) == pytest.approx((2e-6, 4e9, 1e9))
    assert fitted.cached == 2 << 20
    assert fitted.shared_by(2) == Link(fitted.latency * 2, fitted.bandwidth / 2, fitted.cached, fitted.beyond / 2)


def test_a_fit_of_uncertain_times_is_near() -> None:
    random = np.random.default_rng(0)
    cost = Network(LINK, LINK, 2).all_reduce(2)
    times = {n: cost(n) * random.uniform(0.95, 1.05) for n in sizes_until(64 << 20, factor=2)}
    link = fit(times, 2)
    assert link.latency == pytest.approx(2e-6, rel=0.2) and link.bandwidth == pytest.approx(1e9, rel=0.2)


def test_a_fit_has_no_latency_below_zero() -> None:
    link = fit({1 << 20: 0.5e-3, 4 << 20: 4e-3}, 2)
    assert link.latency == 0 and link.bandwidth > 0 and link.cached == np.inf


def test_between_sizes_times_are_powers_of_the_bytes_and_beyond_them_proportional() -> None:
    cost = interpolated({100: 1.0, 10_000: 100.0})
    assert [cost(n) for n in (1, 100, 1000, 10_000, 20_000)] == pytest.approx([1, 1, 10, 100, 200])


def test_sizes() -> None:
    assert list(sizes_until(256 << 10)) == [4 << 10, 16 << 10, 64 << 10, 256 << 10]
