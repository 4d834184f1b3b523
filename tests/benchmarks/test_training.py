"""The table of training loops."""

import pytest

from benchmarks import training
from benchmarks.harness.sweep import Result
from benchmarks.models import loops

ROW = Result("x", {}, {"graphc": [1.0, 3.0], "graphc bf16": [1.0], "eager": [5.0], "inductor": [4.0]})


def test_the_faster_one_of_torch_counts() -> None:
    assert training.best_ratio(ROW) == 2.0
    assert training.best_ratio(ROW, "graphc bf16") == 4.0
    assert training.best_ratio(Result("y", {}, {"graphc": [1.0]})) is None


@pytest.mark.parametrize(
    ("errors", "fits"), [({"graphc": 1e-6}, True), ({"graphc": 1e-2}, False), ({"graphc bf16": 1e-2}, True)]
)
def test_losses_apart_are_marked(errors: dict[str, float], fits: bool) -> None:
    row = Result("x", {}, errors=errors)
    assert training.agrees(row) is fits
    assert ("!" in training.format_rows([row], ["graphc"])) is not fits


def test_problems_are_told() -> None:
    assert "x: eager: none" in training.format_rows([Result("x", {}, problems={"eager": "none"})], ["eager"])


def test_options() -> None:
    assert training.parse(["--only", "v"]).keys == ["vae"]
    assert training.parse([]).keys == list(loops.LOOPS)
    with pytest.raises(SystemExit):
        training.parse(["--contenders", "what"])


def test_a_loop_is_measured_in_a_process(capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["--only", "actor", "--contenders", "graphc,graphc loop", "--rounds", "1", "--seconds", "0.01"]
    assert training.main([*arguments, "--threads", "1"]) == 0
    assert "| actor-critic | 9,797 |" in capfd.readouterr().out
