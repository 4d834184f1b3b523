"""Which nets are refused, and why; steps that fit; several inputs and outputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import StreamError
from tests.streams.cases import WAVE, Case, CausalConv
from tests.streams.compare import expect_all_steps
from tests.streams.nets import ARGUMENTS, NETS
from tests.streams.refusals import REFUSALS


@pytest.mark.parametrize("name", ARGUMENTS)
def test_several_inputs_and_outputs_give_the_numbers_of_whole_sequences(name: str):
    expect_all_steps(NETS[name]())


@pytest.mark.parametrize("name", REFUSALS)
def test_the_refusal_says_what_and_where(name: str):
    refusal = REFUSALS[name]()
    with pytest.raises(StreamError) as caught:
        refusal.case.stream()
    message = str(caught.value)
    assert [words for words in refusal.words if words not in message] == []
    assert "  from   " in message
    assert "  try    " in message
    if refusal.reach is None:
        with pytest.raises(StreamError):
            replace(refusal.case, options={"lookahead": 1 << 20, **refusal.case.options}).stream()


@pytest.mark.parametrize("name", [name for name, build in REFUSALS.items() if build().reach is not None])
def test_the_named_lookahead_suffices_and_no_less(name: str):
    refusal = REFUSALS[name]()
    assert refusal.reach
    with pytest.raises(StreamError, match="looks ahead"):
        replace(refusal.case, options={"lookahead": refusal.reach - 1}).stream()
    expect_all_steps(replace(refusal.case, options={"lookahead": refusal.reach}))


@pytest.mark.parametrize(
    ("layers", "tick"),
    [
        ([nn.MaxPool1d(2)], 2),
        ([nn.MaxPool1d(2), CausalConv(2, 2, 4, stride=3)], 6),
        ([nn.Upsample(scale_factor=4), nn.MaxPool1d(2)], 1),
        ([nn.Upsample(scale_factor=2), nn.AvgPool1d(4)], 2),
    ],
)
def test_the_smallest_step_that_fits(layers: list[nn.Module], tick: int):
    model = nn.Sequential(*layers).eval()
    example = gc.zeros(1, 2, 48)
    assert gc.stream(model, example, dim=2).tick == tick
    assert gc.stream(model, example, dim=2, step=5 * tick).tick == 5 * tick
    if tick > 1:
        with pytest.raises(StreamError, match=r"a step of 5 is too small or uneven: .* takes \d samples at once"):
            gc.stream(model, example, dim=2, step=5)


def test_two_dimensions_of_time_are_refused():
    time = gc.Dim("time")
    with pytest.raises(StreamError, match="input x has two dimensions of time"):
        gc.stream(lambda x: x + 1, gc.zeros(8, 8), dims={"x": (time, time)})


def test_inputs_of_different_lengths_are_refused():
    time = gc.Dim("time")
    with pytest.raises(StreamError, match="inputs of one length in time, and the lengths are"):
        gc.stream(lambda x, y: x[:8] + y, gc.zeros(16), gc.zeros(8), dims={"x": (2 * time,), "y": (time,)})


def test_a_longest_sequence_is_refused():
    time = gc.Dim("time", max=500)
    with pytest.raises(StreamError, match="the dimension has 500 samples at most"):
        gc.stream(lambda x: x + 1, gc.zeros(16), dims={"x": (time,)})


def test_a_length_in_units_counts_samples():
    time = gc.Dim("time")
    stream = gc.stream(lambda x: x.cumsum(0), gc.zeros(16), dims={"x": (4 * time,)})
    assert stream.tick == 4


def test_the_op_to_blame_is_the_first_that_looks_ahead():
    def forward(x: Any) -> Any:
        y = x[..., 2:]
        return nn.functional.pad(y, (0, 2)) + nn.functional.pad(x[..., 1:], (0, 1))

    with pytest.raises(StreamError, match="pad looks ahead: an output needs 2 samples after its own"):
        gc.stream(forward, gc.zeros(1, 1, 8), dim=2)


def test_a_delay_makes_up_for_a_look_ahead_but_at_the_end():
    """The last outputs see zeros in a sequence that ends, and samples in one that goes on."""
    model = nn.Sequential(nn.ConstantPad1d((3, -3), 0.0), nn.Conv1d(2, 2, 7, padding=3))
    with pytest.raises(StreamError, match="conv in 1 looks ahead: an output needs 3 samples"):
        Case(model, WAVE).stream()
    late = Case(model, WAVE, {"lookahead": 3})
    assert late.stream().delay == 0
    expect_all_steps(late)
