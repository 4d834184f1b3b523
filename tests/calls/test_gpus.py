"""``graphc.cuda``."""

from __future__ import annotations

import pytest

import graphc as gc
from graphc.calls import gpus
from graphc.errors import ArgumentError, DeviceError


def test_the_emulated_device_counts_its_memory():
    before = gc.cuda.memory_allocated("cuda-emu")
    x = gc.zeros(1000, device="cuda-emu")
    assert gc.cuda.memory_allocated("cuda-emu") - before >= x.nbytes
    assert gc.cuda.max_memory_allocated("cuda-emu") >= gc.cuda.memory_allocated("cuda-emu")
    free, total = gc.cuda.mem_get_info("cuda-emu")
    assert 0 < free < total and gc.cuda.memory_reserved("cuda-emu") >= x.nbytes
    del x
    assert gc.cuda.memory_allocated("cuda-emu") == before
    gc.cuda.reset_peak_memory_stats("cuda-emu")
    assert gc.cuda.max_memory_allocated("cuda-emu") == before
    assert gc.cuda.get_device_name("cuda-emu")


def test_events_and_waiting():
    first, last = (gc.cuda.Event(enable_timing=True, device="cuda-emu") for _ in range(2))
    first.record()
    gc.ones(3, device="cuda-emu").sum()
    last.record()
    last.synchronize()
    gc.cuda.synchronize("cuda-emu")
    assert first.query() and first.elapsed_time(last) > 0


def test_seeds_are_those_of_all_devices():
    gc.cuda.manual_seed_all(4)
    first = gc.rand(3, device="cuda-emu")
    gc.manual_seed(4)
    assert (first.cpu() == gc.rand(3)).all()


def test_without_a_gpu():
    if gc.cuda.is_available():
        pytest.skip("there is one")
    assert gc.cuda.device_count() == 0
    for ask in (gc.cuda.current_device, gc.cuda.synchronize, gc.cuda.memory_allocated, gc.cuda.get_device_name):
        with pytest.raises(DeviceError):
            ask()
    with pytest.raises(ArgumentError, match="there is no device"):
        gc.cuda.synchronize("tpu")


def test_streams_of_a_device_are_one():
    stream = gc.cuda.Stream("cuda-emu")
    with gc.cuda.stream(stream):
        gc.ones(3, device="cuda-emu").sum()
    event = stream.record_event()
    stream.wait_event(event)
    gc.cuda.current_stream("cuda-emu").wait_stream(stream)
    stream.synchronize()
    assert event.query()


def test_what_a_device_can_do():
    assert gc.cuda.get_device_capability("cuda-emu") == (9, 0)


def test_giving_memory_back_needs_no_gpu():
    gc.cuda.empty_cache()


def test_questions_of_scripts_without_a_gpu():
    state = gpus.get_rng_state_all()
    gpus.set_rng_state_all(state)
    gpus.init()
    gpus.ipc_collect()
    gpus.set_device(0)
    assert gpus.initial_seed() == gc.initial_seed() and not gpus.is_current_stream_capturing()
    assert gpus.is_initialized() is gpus.is_available() is gpus.is_bf16_supported()
    with pytest.raises(ArgumentError, match="first GPU"):
        gpus.set_device("cuda:1")
