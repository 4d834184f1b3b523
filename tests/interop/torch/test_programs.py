"""Programs for the sizes that calls have: what a trace assumes of them is looked at in each call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")
programs: Any = pytest.importorskip("graphc.interop.torch.programs")

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The Programs that are made from now on."""
    results: list[Any] = []
    make = programs.Programs.__init__

    def noted(self: Any, *args: Any) -> None:
        results.append(self)
        make(self, *args)

    monkeypatch.setattr(programs.Programs, "__init__", noted)
    return results


def agree(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> None:
    """Compiled for all sizes it gives what it gives eagerly, and Dynamo has traced it once."""
    compiled = torch.compile(function, backend="graphc", dynamic=True)
    for args in calls:
        torch.testing.assert_close(compiled(*args), function(*args))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


def lengths(*sizes: int) -> list[tuple[Any, ...]]:
    return [(torch.rand(n),) for n in sizes]


def test_a_trace_that_depends_on_a_size_is_not_used_for_sizes_for_which_it_does_not_hold(made: list[Any]):
    agree(lambda x: x.cumprod(0), lengths(3, 17, 40, 4, 18))
    assert made[0].count == 3, "of 3 and 4, of 17 and 18, of 40"


def test_one_program_is_for_all_sizes_where_nothing_is_assumed(made: list[Any]):
    agree(lambda x: torch.arange(x.shape[0]) * x.sum() / x.shape[0], lengths(3, 17, 40, 4, 18))
    assert made[0].count == 1


def test_numbers_out_of_the_range_of_sizes_have_a_program_of_their_own(made: list[Any]):
    x = torch.rand(3)
    agree(lambda x, n: x * n, [(x, 5), (x, 12), (x, -7), (x, 3_000_000_000), (x, -7)])
    assert made[0].count == 3


def test_what_no_program_for_all_sizes_can_be_made_of_has_one_for_each(
    made: list[Any], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(programs, "MOST", 2)
    weight = torch.rand(2, 5, 3)
    calls = [(torch.rand(2, 5, n), weight) for n in (8, 11, 14, 11, 8)]
    agree(lambda x, w: torch.nn.functional.conv1d(x, w, stride=2, padding=1), calls)
    assert made[0].count == 4, "the first was dropped for the third"


def test_halves_have_a_program_for_each_remainder(made: list[Any]):
    agree(lambda x: x.chunk(2)[0] * 2, lengths(6, 9, 10, 9, 6))
    assert made[0].count == 2


def test_a_product_of_sizes_is_divided_by_a_number(made: list[Any]):
    agree(lambda x: x.reshape(-1, 3) * 2, [(torch.rand(n, 6),) for n in (4, 5, 7)])
    assert [p.count for p in made] == [1]


def test_a_question_of_a_pass_becomes_an_assumption(made: list[Any], caplog: pytest.LogCaptureFixture):
    def transposed(x, weight):
        return torch.nn.functional.conv_transpose1d(x, weight, stride=3, padding=1, output_padding=1)

    agree(transposed, [(torch.rand(2, 3, n), torch.rand(3, 4, 3)) for n in (8, 11)])
    assert [p.count for p in made] == [1] and "compiled for each size" not in caplog.text
