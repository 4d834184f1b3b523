"""Signal handlers in the middle of a trace compute eagerly, and leave nothing in the graph."""

from __future__ import annotations

import gc as gc_module
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import graphc as gc
from graphc import nn
from graphc.base.interruptions import kept_outside, set_profile
from graphc.tape.grad_mode import is_grad_enabled


@pytest.fixture
def handled() -> Iterator[list[Any]]:
    """Return the entries that the handler of SIGUSR1 appended; None calls are told by ``work``."""
    found: list[Any] = []
    before = signal.getsignal(signal.SIGUSR1)
    yield found
    signal.signal(signal.SIGUSR1, before)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGUSR1)


def test_a_handler_that_calls_models_is_not_traced(handled: list[Any]):
    model = nn.Linear(3, 2)
    fast = gc.compile(model)
    x = gc.rand(4, 3)

    def handler(*_: Any) -> None:
        handled.append((float(fast(x).sum()), float(model(x).sum()), is_grad_enabled()))

    signal.signal(signal.SIGUSR1, handler)

    def f(x: gc.Tensor) -> gc.Tensor:
        with gc.no_grad():
            interrupt()
            return x * 2

    graph = gc.trace(f, gc.ones(3))
    assert len(handled) == 1
    compiled, eager, grad_enabled = handled[0]
    assert compiled == pytest.approx(eager, rel=1e-5) and grad_enabled
    assert len([node for node in graph.nodes() if node.op.name in ("matmul", "mul")]) == 1
    assert signal.getsignal(signal.SIGUSR1) is handler


def test_training_steps_and_batches_are_kept_apart_too(handled: list[Any]):
    signal.signal(signal.SIGUSR1, lambda *_: handled.append(float((gc.ones(2) * 3).sum())))
    model = nn.Linear(3, 2)

    def loss(output: gc.Tensor, target: gc.Tensor) -> gc.Tensor:
        interrupt()
        return ((output - target) ** 2).mean()

    gc.compile_step(model, loss, gc.optim.SGD(model.parameters(), lr=0.1))(gc.rand(4, 3), gc.rand(4, 2))

    def f(x: gc.Tensor) -> gc.Tensor:
        interrupt()
        return x.sin()

    gc.vmap(f)(gc.rand(4, 3))
    assert len(handled) >= 2 and set(handled) == {6.0}


def test_a_handler_that_is_installed_inside_stays(handled: list[Any]):
    def late(*_: Any) -> None:
        handled.append("late")

    signal.signal(signal.SIGUSR1, lambda *_: handled.append("early"))
    with kept_outside():
        interrupt()
        signal.signal(signal.SIGUSR1, late)
        interrupt()
    assert handled == ["early", "late"]
    assert signal.getsignal(signal.SIGUSR1) is late


def test_what_a_handler_raises_ends_the_trace_and_restores_it(handled: list[Any]):
    def handler(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGUSR1, handler)

    def f(x: gc.Tensor) -> gc.Tensor:
        interrupt()
        return x * 2

    with pytest.raises(TimeoutError):
        gc.compile(f)(gc.ones(3))
    assert signal.getsignal(signal.SIGUSR1) is handler
    assert (gc.ones(2) + 1).tolist() == [2.0, 2.0]  # eager again


COUNT = 0


def count(*_: Any) -> None:
    global COUNT
    COUNT += 1


def test_what_runs_in_between_is_not_what_the_function_reads_and_assigns(handled: list[Any]):
    signal.signal(signal.SIGUSR1, count)
    gc_module.callbacks.append(count)

    def f(x: gc.Tensor) -> gc.Tensor:
        interrupt()
        gc_module.collect()
        return x * 2

    try:
        fast = gc.compile(f)
        before = COUNT
        fast(gc.ones(2))
        assert before < COUNT
        count()
        fast(gc.ones(2))
        assert len(fast.variants) == 1
    finally:
        gc_module.callbacks.remove(count)


def test_other_threads_have_no_handlers_to_keep():
    failed: list[BaseException] = []

    def work() -> None:
        try:
            with kept_outside():
                pass
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not failed


# In a process of its own: an audit hook cannot be removed.
_THREADS_THAT_INSTALL = textwrap.dedent(
    """
    import sys, threading, time
    from concurrent.futures import ThreadPoolExecutor
    from graphc.base.interruptions import set_profile

    met = []

    def hook(event, arguments):
        if event == "sys.setprofile":
            met.append(threading.get_ident())
            time.sleep(0.001)  # Another thread runs in the middle of the installation.

    def profile(frame, event, argument):
        pass

    def install(_):
        for _ in range(20):
            set_profile(profile)
            assert sys.getprofile() is profile
            set_profile(None)
            assert sys.getprofile() is None

    sys.addaudithook(hook)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(install, range(4)))
    assert len(met) >= 160
    """
)


def test_threads_install_profile_functions_at_once():
    ended = subprocess.run([sys.executable, "-c", _THREADS_THAT_INSTALL], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_the_profile_function_of_a_thread_is_replaced_and_removed():
    seen = []
    before = sys.getprofile()

    set_profile(lambda frame, event, argument: seen.append(event))
    try:
        textwrap.dedent(" a")
    finally:
        set_profile(before)
    assert "call" in seen and sys.getprofile() is before
