"""gc.stream: calls, states, files and libraries of a tick, errors."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import ArgumentError, StreamError
from graphc.codegen.machine.target import target_named
from graphc.streams.stream import Stream
from tests.streams.cases import TIME, WAVE, Case, CausalConv
from tests.streams.compare import expect_equal, part, run, whole
from tests.streams.nets import NETS

_COMPILED = ("wavenet", "gru_tagger", "keywords", "heads_of_a_window", "tasnet")


@pytest.fixture
def case() -> Case:
    gc.manual_seed(1)
    return Case(nn.Sequential(CausalConv(2, 3, 3), nn.Tanh(), CausalConv(3, 2, 2)).eval(), WAVE)


@pytest.mark.parametrize("name", _COMPILED)
def test_calls_of_any_number_of_ticks(name: str):
    case = NETS[name]()
    stream = case.stream()
    arrays = case.inputs(12 * stream.tick)
    expected = whole(case, arrays)[0]
    axis = stream.axes[0]
    assert axis is not None
    parts = [stream(*part(case, arrays, a * stream.tick, b * stream.tick)) for a, b in ((0, 1), (1, 5), (5, 12))]
    found = np.concatenate([p.detach().numpy() for p in parts], axis)
    found = np.moveaxis(np.moveaxis(found, axis, 0)[stream.delay :], 0, axis)
    expect_equal(found, expected)
    stream.reset()
    assert np.array_equal(stream(*part(case, arrays, 0, stream.tick)).detach().numpy(), parts[0].detach().numpy())


def test_outputs_keep_their_structure():
    case = NETS["outputs_by_name"]()
    found = case.stream()(*case.inputs(5))
    assert isinstance(found, Mapping)
    assert {name: x.shape for name, x in found.items()} == {"states": (2, 5, 5), "last": (2, 5), "speech": (2, 5, 1)}
    expected = case.model(*map(gc.from_numpy, case.inputs(5)))
    for name, x in found.items():
        expect_equal(x.detach().numpy(), expected[name].detach().numpy())


def test_streams_of_one_program_run_by_themselves(case: Case):
    a = case.stream()
    (x,), (y,) = case.inputs(8), case.inputs(8, seed=1)
    a(x[..., :4])
    b = a.fresh()
    second, other = a(x[..., 4:]).detach().numpy(), b(y).detach().numpy()
    expect_equal(second, whole(case, [x])[0][..., 4:])
    expect_equal(other, whole(case, [y])[0])


def test_states_are_copies(case: Case):
    stream = case.stream()
    (x,) = case.inputs(8)
    stream(x[..., :4])
    state = stream.state
    first = stream(x[..., 4:]).detach().numpy()
    for array in stream.state.values():
        array[...] = 0
    stream.state = state
    assert np.array_equal(stream(x[..., 4:]).detach().numpy(), first)


def test_another_streams_states_are_refused(case: Case):
    stream = case.stream()
    with pytest.raises(ArgumentError, match="not the states of this stream"):
        stream.state = {"history": np.zeros(3, np.float32)}


# ---- files and libraries


def _loaded(stream: Stream, path: Path, **options: Any) -> Any:
    """Return the model of a C library with a proof of its running time."""
    files = {"path": path / "tick.so", "emit": ("so", "h", "py"), "realtime": True, **options}
    library = gc.build_library(stream.module, *stream.examples(), **files)
    report = library.realtime["run"]
    assert report.outside == ()
    assert report.instructions
    spec = importlib.util.spec_from_file_location("loader", library.files["py"])
    assert spec is not None
    assert spec.loader is not None
    loader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loader)
    return loader.Model()


@pytest.mark.parametrize("name", _COMPILED)
def test_a_library_gives_the_numbers_tick_by_tick(name: str, tmp_path: Path):
    case = NETS[name]()
    stream = case.stream()
    count = 10 * stream.tick
    (array,) = case.inputs(count)
    expected = run(stream, case, [array], 0, count)[0]
    stream.reset()
    model = _loaded(stream, tmp_path)
    ticks = [part(case, [array], n, n + stream.tick) for n in range(0, count, stream.tick)]
    results = [np.array(model.run(*tick)) for tick in ticks]
    expect_equal(np.concatenate(results, stream.axes[0]), expected)
    model.call("reset_state", model.context)
    assert np.array_equal(np.array(model.run(*ticks[0])), results[0])


def test_a_filter_that_decays_ends_in_zeros(tmp_path: Path):
    if target_named("host").flush_mode is None:
        pytest.skip("the control register of this processor is not known")

    def forward(x: Any) -> Any:
        return gc.scan(lambda y, s: (y * 0.5 + s, y * 0.5 + s), gc.zeros(1), x)[1]

    pulse = np.zeros((192, 1), np.float32)
    pulse[0] = 1
    plain, flushed = (gc.stream(forward, gc.zeros(64, 1), dim=0, step=16, flush_denormals=f) for f in (False, True))
    expected, found = plain(pulse).numpy(), flushed(pulse).numpy()
    smallest = int(np.flatnonzero(expected >= np.finfo(np.float32).tiny)[-1])
    assert np.array_equal(found[: smallest + 1], expected[: smallest + 1])
    assert expected[smallest + 1] > 0
    assert not found[smallest + 1 :].any()
    assert not flushed.fresh()(pulse).numpy()[smallest + 1 :].any()
    model = _loaded(flushed, tmp_path, flush_denormals=True)
    ticks = [np.array(model.run(pulse[n : n + 16])) for n in range(0, 192, 16)]
    assert np.array_equal(np.concatenate(ticks), found)


@pytest.mark.parametrize("name", _COMPILED)
def test_a_file_gives_the_numbers_tick_by_tick(name: str, tmp_path: Path):
    case = NETS[name]()
    stream = case.stream()
    count = 10 * stream.tick
    (array,) = case.inputs(count)
    gc.export(stream.module, *stream.examples(), path=tmp_path / "tick.gcm")
    model = gc.load(tmp_path / "tick.gcm")
    ticks = [part(case, [array], n, n + stream.tick) for n in range(0, count, stream.tick)]
    results = [np.array(model.run(tick)[0]) for tick in ticks]
    expect_equal(np.concatenate(results, stream.axes[0]), run(stream, case, [array], 0, count)[0])


# ---- errors


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([np.zeros((1, 3, 4), np.float32)], "input .* of a tick is f32.1, 2, 1., got float32.1, 3, 4."),
        ([np.zeros((2, 4), np.float32)], "got float32.2, 4."),
        ([np.zeros((1, 2, 4))], "got float64.1, 2, 4."),
        ([np.zeros((1, 2, 0), np.float32)], "has 0 samples, and a tick takes 1"),
        ([], "the stream takes 1 inputs, got 0"),
        ([np.zeros((1, 2, 4), np.float32)] * 2, "the stream takes 1 inputs, got 2"),
    ],
)
def test_wrong_inputs_of_a_call(case: Case, inputs: list[np.ndarray], message: str):
    with pytest.raises(ArgumentError, match=message):
        case.stream()(*inputs)


def test_a_call_takes_whole_ticks_of_all_inputs():
    stream = gc.stream(lambda x, y: (x + y)[..., ::2], gc.zeros(1, 16), gc.zeros(1, 16), dim=1)
    short, long = np.zeros((1, 3), np.float32), np.zeros((1, 4), np.float32)
    with pytest.raises(ArgumentError, match="has 3 samples, and a tick takes 2"):
        stream(short, long)
    with pytest.raises(ArgumentError, match="different numbers of samples"):
        stream(long, np.zeros((1, 6), np.float32))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dim": 3}, "an example of rank 3 has no dimension 3"),
        ({}, "the dimension of time is not known"),
        ({"dim": 2, "step": 0}, "step must be at least 1, got 0"),
        ({"dim": 2, "step": 2.5}, "step must be a whole number, got float"),
        ({"dim": 2, "lookahead": -1}, "lookahead must be at least 0, got -1"),
        ({"dim": 2, "memory": 0}, "memory must be at least 1, got 0"),
        ({"dim": None}, "dim must be a whole number, got NoneType"),
        ({"dim": 2, "dims": {0: (None, None, gc.Dim("time"))}}, "dims names the dimension of time"),
        ({"dims": {0: (None, None, gc.Dim("time_2"))}}, "no dimension 'time' .its dimensions: time_2"),
        ({"dims": {0: (None, None, gc.Dim("frames"))}}, "the model has no dimension 'time' .its dimensions: frames"),
    ],
)
def test_wrong_arguments(case: Case, arguments: dict[str, Any], message: str):
    with pytest.raises(ArgumentError, match=message):
        gc.stream(case.model, gc.zeros(1, 2, 16), **arguments)


def test_nested_arguments_need_names_of_dimensions():
    with pytest.raises(ArgumentError, match="arguments are nested"):
        gc.stream(lambda pair: pair[0] + pair[1], (gc.zeros(1, 8), gc.zeros(1, 8)), dim=1)


def test_dims_name_the_dimension_of_time(case: Case):
    frames = {0: (None, None, gc.Dim("frames"))}
    assert gc.stream(case.model, gc.zeros(1, 2, 16), dims=frames, dim="frames").tick == 1


def test_other_dimensions_have_the_sizes_of_the_examples(case: Case):
    time, other, batch = gc.Dim("time"), gc.Dim("time_2"), gc.Dim("batch")
    (x,) = case.inputs(6)
    found = gc.stream(case.model, gc.zeros(1, 2, 16), dims={0: (batch, None, time)})(x)
    expect_equal(found.detach().numpy(), whole(case, [x])[0])
    dims = {0: (None, other), 1: (None, time)}
    stream = gc.stream(lambda y, x: x.cumsum(1) + y.sum(), gc.zeros(1, 8), gc.zeros(1, 8), dims=dims)
    assert [x.shape for x in stream.examples()] == [(1, 8), (1, 1)]


@pytest.mark.parametrize("fresh", [False, True])
def test_a_stream_keeps_the_parameters_that_it_was_made_with(fresh: bool):
    gc.manual_seed(0)
    model = nn.Sequential(nn.ConstantPad1d((2, 0), 0.0), nn.Conv1d(2, 3, 1), nn.Conv1d(3, 2, 3)).eval()
    case = Case(model, WAVE)
    (x,) = case.inputs(6)
    stream, expected = case.stream(), whole(case, [x])[0]
    with gc.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2).add_(0.5)
    expect_equal((stream.fresh() if fresh else stream)(x).detach().numpy(), expected)


@pytest.mark.parametrize(
    ("inputs", "options", "message"),
    [
        ([], {}, "the stream takes 1 inputs, got 0"),
        ([np.zeros((2, 4), np.float32)], {}, "got float32.2, 4."),
        ([np.zeros((1, 2, 1), np.float32)], {}, "has 0 samples, and a tick takes 2"),
        ([np.zeros((1, 2, 8), np.float32)], {"passes": True}, "takes sequences, rtol and atol"),
        ([np.zeros((1, 2, 8), np.float32)], {"precision": "int8"}, "takes sequences, rtol and atol"),
    ],
)
def test_wrong_arguments_of_a_check(case: Case, inputs: list[np.ndarray], options: dict[str, Any], message: str):
    with pytest.raises(ArgumentError, match=message):
        gc.check(case.stream(2), *inputs, **options)


def test_a_step_that_does_not_fit():
    with pytest.raises(StreamError, match="a step of 3 is too small or uneven: slice takes 2 samples at once"):
        gc.stream(lambda x: x[..., ::2], gc.zeros(1, 16), dim=1, step=3)


def test_inputs_without_time_are_repeated():
    case = NETS["speaker"]()
    assert [TIME in shape for shape in case.shapes] == [True, False]
    x, speaker = case.inputs(6)
    stream = case.stream()
    found = [stream(x[:, :2], speaker), stream(x[:, 2:], speaker)]
    expect_equal(np.concatenate([f.detach().numpy() for f in found], 1), whole(case, [x, speaker])[0])
