"""Scaling: measured on two ranks, and predicted from known figures."""

import json
from pathlib import Path

import pytest

from benchmarks import scaling
from benchmarks.cluster.bucket_plan import Silent
from benchmarks.cluster.networks import Link, Network
from benchmarks.cluster.ranks import in_buckets
from benchmarks.cluster.report import checked, plans_of, trainings
from benchmarks.cluster.step_model import plain, slower
from benchmarks.harness.process import make_environment
from benchmarks.harness.timing import find_library
from graphc.distributed.group import Group

HERE = Link(1e-5, 1e9)
SIZES = [4 << 10, 64 << 10, 1 << 20, 16 << 20]


def times(ranks: int) -> dict[str, list[float]]:
    cost = Network(HERE, HERE, ranks).all_reduce(ranks)
    return {str(n): [cost(n), 2 * cost(n)] for n in SIZES}


def measurements() -> dict:
    """Return measurements of two ranks, each with a core, that the model predicts exactly."""
    bucket = {"name": "b", "nbytes": 1 << 20, "start": (0.5, 0.5), "reduce": (0.5, 0.5), "wait": (0.75, 0.75)}
    plan = {"begin": 0.0, "seconds": 1.0, "buckets": [bucket]}
    reduction = Network(HERE, HERE, 2).all_reduce(2)(1 << 20)
    seconds = {
        "alone": [0.1],
        "silent": [0.1],
        "beside": [0.2],
        "parallel": [0.2 + reduction],
        "reduction": [reduction],
    }
    facts = {"peer": "graphc", "case": "net", "ranks": 2, "samples": 8, "buckets": [1 << 20]}
    training = {"mode": "training", **facts, "plan": plan, "seconds": seconds}
    rows = [{"mode": "reductions", "peer": "graphc", "ranks": n, "seconds": times(n)} for n in (2, 4)]
    return {
        "cpu": "a",
        "cores": 4,
        "rounds": 1,
        "rows": [*rows, {**training, "buckets": [1 << 20], "seconds": seconds}],
    }


def test_the_model_is_fitted_to_the_fewest_ranks_and_compared_with_all() -> None:
    checks = checked(measurements())
    assert checks.ranks == 2 and checks.local.bandwidth == pytest.approx(1e9)
    assert set(checks.reductions) == {2, 4}
    assert max(abs(e) for one in checks.reductions.values() for e in one.values()) < 1e-9
    (step,) = checks.steps
    assert step.predicted == pytest.approx(step.measured) == pytest.approx(step.fitted)


def test_ranks_that_share_cores_share_their_link() -> None:
    checks = checked({**measurements(), "cores": 2})
    assert checks.reductions[4][1 << 20] == pytest.approx(1.0), "twice the time of ranks with a core each"


def test_plans_are_at_the_speed_of_one_rank() -> None:
    (plan,) = plans_of(measurements()).values()
    assert plan.seconds == pytest.approx(0.1) and plan.buckets[0].ready == pytest.approx(0.05)
    assert plain(slower(plan, 2), lambda n: 0.0).seconds == pytest.approx(0.2)


def test_efficiency_is_the_rate_of_a_rank_over_that_of_one_alone() -> None:
    (row,) = trainings(measurements())
    assert row.efficiency == pytest.approx(0.1 / row.parallel) and row.rate == pytest.approx(16 / row.parallel)
    assert row.bound == pytest.approx(0.1 / (0.1 + row.reduction))


def test_known_figures_are_put_on_paper(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures_file = tmp_path / "known.json"
    figures_file.write_text(json.dumps({"measured": measurements()}))
    assert scaling.main(["--from", str(figures_file), "--paper", "8,4096", "--speed", "1,10"]) == 0
    text = capsys.readouterr().out
    assert "| 4096 |" in text and "compute 10 times as fast" in text and "1 GB/s and 10 µs" in text
    assert scaling.main(["--from", str(figures_file), "--paper", "8", "--local-bandwidth", "2", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [one["network"]["local"]["bandwidth"] for one in report["paper"]] == [2e9, 2e9]
    assert [row["kind"] for row in report["paper"][0]["cases"]["net"]] == ["plain", "ZeRO-1"]


@pytest.mark.parametrize(
    "arguments", [["--overlap", "2"], ["--bandwidth", "0"], ["--ranks", "0"], ["--cases", "what"], ["--speed", "0"]]
)
def test_options_that_mean_nothing(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        scaling.parse(["--from", "x", *arguments])


def test_a_silent_group_takes_one_process_for_several() -> None:
    group = Group(Silent(3))
    assert group.size == 3 and group.gather_objects("a") == ["a"] * 3


def test_buckets_begin_with_a_small_one() -> None:
    assert in_buckets(60, 1, 25) == [1, 25, 25, 9] and in_buckets(1, 2, 25) == [1]


needs_mpi = pytest.mark.skipif(
    find_library("mpi4py") is None or scaling.launcher() is None, reason="needs mpi4py and mpiexec"
)


@needs_mpi
def test_two_ranks_are_measured_and_modelled(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "--cases",
        "policy_b256",
        "--peers",
        "graphc",
        "--rounds",
        "1",
        "--seconds",
        "0.01",
        "--bytes",
        "65536",
    ]
    assert scaling.main([*arguments, "--json", "--paper", "8", "--limit", "120"]) == 0
    report = json.loads(capsys.readouterr().out)
    reductions, training = report["measured"]["rows"]
    assert set(map(int, reductions["seconds"])) == {4096, 16384, 65536}
    assert training["samples"] == 256 and training["buckets"] == [22808]
    assert [b["nbytes"] for b in training["plan"]["buckets"]] == [22808]
    assert all(min(rounds) > 0 for rounds in training["seconds"].values())
    (step,) = report["checks"]["steps"]
    assert step["predicted"] > 0 and report["paper"][0]["cases"]["policy_b256"]


@needs_mpi
def test_ranks_that_fail_say_why(tmp_path: Path) -> None:
    order = {"mode": "training", "peer": "graphc", "case": "no such case", "rounds": 1, "seconds": 0.01}
    answer = scaling.run_ranks(order, 1, make_environment(1, tmp_path), 60)
    assert "no such case" in answer["problem"]
