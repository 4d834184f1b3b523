"""Settings of every test: build programs each time, let Ctrl-C interrupt, mark comparisons with PyTorch."""

from __future__ import annotations

import functools
import gc
import hashlib
import logging
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from unittest import mock

import pytest

from graphc.base.switches import use_deterministic_algorithms
from graphc.calls import function
from graphc.ir.op import REGISTRY
from graphc.runtime.devices import emulated_build
from graphc.tensors.printing import set_printoptions
from tools.cuda.device_check import reason_without
from tools.test_times import TimesPlugin

os.environ["GRAPHC_CACHE"] = "off"
# Kernels of emulated devices run in several orders, and their accesses are watched for races.
os.environ.setdefault("GRAPHC_EMULATOR", "orders,races")
# Shells start what runs in the background with SIGINT ignored, and programs that tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--times=FILE`` (with ``=``: pytest takes a file after a space for a test), ``--sample`` and its seed."""
    parser.addoption("--times", type=Path, metavar="FILE", help="write the processor seconds of each test to a file")
    parser.addoption("--sample", type=float, default=100, metavar="PERCENT", help="run a random share of the tests")
    parser.addoption("--sample-seed", type=int, default=0, metavar="N", help="draw another share")


def pytest_configure(config: pytest.Config) -> None:
    """Record times where asked, and keep compiled kernels of emulated devices from one run to the next."""
    times = config.getoption("--times")
    if times is not None:
        worker = hasattr(config, "workerinput")
        config.pluginmanager.register(TimesPlugin(config, None if worker else times.resolve()))
    if config.pluginmanager.has_plugin("cacheprovider"):
        emulated_build.keep_in(Path(config.cache.mkdir("emulated")))  # type: ignore[union-attr]


_COMPARES = re.compile(r"""^from tests\.\S*(compare|against_torch) import|importorskip\("torch"\)""", re.MULTILINE)


@pytest.fixture(autouse=True)
def default_settings() -> Iterator[None]:
    """Undo what scripts set for the whole process: deterministic algorithms, the way tensors are printed."""
    yield
    use_deterministic_algorithms(False)
    set_printoptions(profile="default")


@pytest.fixture(autouse=True)
def pytorch_as_it_starts(request: pytest.FixtureRequest) -> None:
    """Reset PyTorch's printing and computing options to its defaults."""
    torch = sys.modules.get("torch")
    if torch is not None and request.node.get_closest_marker("torch") is not None:
        torch.use_deterministic_algorithms(False)
        torch.set_printoptions(profile="default", sci_mode=None)


@pytest.fixture(scope="session")
def torch() -> ModuleType:
    """Return PyTorch; skip the test where it is not installed."""
    return pytest.importorskip("torch")


@functools.cache
def _compares(path: Path) -> bool:
    return bool(_COMPARES.search(path.read_text(encoding="utf-8")))


def in_sample(test: str, percent: float, seed: int) -> bool:
    """Return whether a test id belongs to a random share of all, the same in every process and on every machine."""
    digest = hashlib.blake2b(f"{seed} {test}".encode(), digest_size=4).digest()
    return int.from_bytes(digest) < percent / 100 * 2**32


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the sample, and mark the tests that compare with PyTorch, or are in a file whose helpers do: ``pytest -m
    torch`` runs what was skipped without it. And those with a ``device``: ``pytest -m cuda`` runs on a GPU what
    ``pytest -m emulated`` runs without one."""
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled is not None and not in_sample(item.nodeid, sampled.args[0], 0):
            item.add_marker("slow")
    percent, seed = config.getoption("--sample"), config.getoption("--sample-seed")
    left_out = [item for item in items if not in_sample(item.nodeid, percent, seed)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if in_sample(item.nodeid, percent, seed)]
    for item in items:
        if _compares(item.path) or "torch" in getattr(item, "fixturenames", ()):
            item.add_marker("torch")
        params = getattr(getattr(item, "callspec", None), "params", {})
        for device in {params.get("device"), params.get("device_of_module")} & _MARKS.keys():
            item.add_marker(_MARKS[device])


def pytest_collection_finish() -> None:
    """Keep the garbage collector from walking over all tests each time: collections in tests then cost what they do in
    a program."""
    gc.collect()
    gc.freeze()


_MARKS = {"cuda-emu": "emulated", "cuda": "cuda"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests of a module whose DEVICE is the emulated one run on a GPU, too."""
    if getattr(metafunc.module, "DEVICE", None) == "cuda-emu" and "device" not in metafunc.fixturenames:
        metafunc.parametrize("device_of_module", list(_MARKS), indirect=True)


@pytest.fixture(autouse=True)
def device_of_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """Return DEVICE of the test's module."""
    if getattr(request, "param", "cuda-emu") == "cuda-emu":
        yield
        return
    if _reason_without_gpu():
        pytest.skip(_reason_without_gpu())
    with mock.patch.object(request.module, "DEVICE", request.param):
        yield


@functools.cache
def _reason_without_gpu() -> str:
    return reason_without("cuda")


@pytest.fixture(params=list(_MARKS))
def device(request: pytest.FixtureRequest) -> str:
    """Name of a device: the emulated one, and a GPU. Without a GPU its tests are skipped; the others never are."""
    if request.param == "cuda" and _reason_without_gpu():
        pytest.skip(_reason_without_gpu())
    return request.param


@pytest.fixture
def own_ops() -> Iterator[None]:
    """Remove the ops that a test defined from the registry."""
    before = dict(REGISTRY)
    yield
    for name in REGISTRY.keys() - before.keys():
        del REGISTRY[name]


@pytest.fixture
def traces(monkeypatch):
    """Return the list of functions traced so far."""
    found = []
    trace = function.trace_function

    def counted(target, *args, **kwargs):
        found.append(target)
        return trace(target, *args, **kwargs)

    monkeypatch.setattr(function, "trace_function", counted)
    return found


@pytest.fixture
def told_reasons(monkeypatch, caplog):
    """Return the messages about recompiled programs."""
    monkeypatch.setenv("GRAPHC_EXPLAIN_RECOMPILES", "1")
    caplog.set_level(logging.WARNING, "graphc")
    return lambda: [r.getMessage() for r in caplog.records if r.name == "graphc.recompiles"]
