"""Graphs that write to their arguments, in their own memory and nothing beside what changes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from graphc.errors import FallbackWarning, IndexRangeError

torch = pytest.importorskip("torch")
writes: Any = pytest.importorskip("graphc.interop.torch.writes")
program: Any = pytest.importorskip("graphc.interop.torch.program")

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


@pytest.fixture
def within(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the arguments that programs created from now on write in place."""
    results: list[int] = []
    make = program.TorchProgram.__init__

    def noted(self: Any, *args: Any) -> None:
        make(self, *args)
        results.append(len(self._written))

    monkeypatch.setattr(program.TorchProgram, "__init__", noted)
    return results


def agree(function: Callable[..., Any], *args: Any, **named: Any) -> None:
    """Compiled and called several times, natively in the end, it gives and writes what it does eagerly, in its
    memory."""
    compiled = torch.compile(function, backend="graphc", **named)
    ours, theirs = ([torch.empty_strided(a.shape, a.stride(), dtype=a.dtype).copy_(a) for a in args] for _ in "ab")
    places = [a.data_ptr() for a in ours]
    for _ in range(4):
        versions = [a._version for a in (*ours, *theirs)]
        torch.testing.assert_close(compiled(*ours), function(*theirs))
        torch.testing.assert_close(ours, theirs)
        changed = [a._version > v for a, v in zip((*ours, *theirs), versions, strict=True)]
        assert changed[: len(ours)] == changed[len(ours) :], "PyTorch counts the same writes"
    assert places == [a.data_ptr() for a in ours]


PLACES = torch.tensor([1, 3])


def _assigned(x: Any, new: Any) -> Any:
    x[:, PLACES] = new
    return x.sum(-1)


def _sliced(x: Any, new: Any) -> Any:
    x[:, 2:4] = new
    x[:, 0] += 1
    return x * 2


def _read_before(x: Any, new: Any) -> Any:
    before = x * 3
    x.index_copy_(1, PLACES, new)
    return before, x + 1


def _swapped(x: Any, new: Any) -> Any:
    old = x[:, :2].clone()
    x[:, :2].copy_(new)
    new.copy_(old)
    return old.sum()


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "at places": lambda x, new: x.index_copy_(1, PLACES, new).sum(),
    "an assignment at places": _assigned,
    "of slices": _sliced,
    "with reads of what was there": _read_before,
    "of two that take each other's content": _swapped,
    "of all": lambda x, new: x.mul_(2).add_(new.sum()).sum(),
    "with nothing else": lambda x, new: x.index_add_(1, PLACES, new) and None,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_write_goes_to_the_memory_of_the_argument(name: str, within: list[int]):
    function = FUNCTIONS[name] if name != "with nothing else" else _nothing_else
    agree(function, torch.rand(2, 5, 3), torch.rand(2, 2, 3), options={"fallback": "error"})
    assert within[0] >= 1


def _nothing_else(x: Any, new: Any) -> Any:
    x.index_add_(1, PLACES, new)


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0), (0, 2, 1)])
def test_an_argument_may_lie_in_any_order(order: tuple[int, ...], within: list[int]):
    sizes = torch.empty(2, 5, 3).permute(order).shape
    x = torch.rand(sizes).permute([order.index(d) for d in range(3)])
    assert x.shape == (2, 5, 3)
    agree(FUNCTIONS["at places"], x, torch.rand(2, 2, 3))
    assert within == [1]


def test_an_argument_with_gaps_and_one_of_open_sizes_are_written_after_the_call(within: list[int]):
    wide = torch.rand(2, 5, 6)[:, :, :3]
    compiled = torch.compile(FUNCTIONS["at places"], backend="graphc")
    expected = wide.clone()
    FUNCTIONS["at places"](expected, torch.ones(2, 2, 3))
    compiled(wide, torch.ones(2, 2, 3))
    assert torch.equal(wide, expected)
    for size in (5, 7):
        agree(FUNCTIONS["of all"], torch.rand(2, size, 3), torch.rand(2, 2, 3), dynamic=True)
    assert set(within) == {0}


def test_arguments_that_share_memory_are_written_as_pytorch_does():
    def function(x: Any, part: Any) -> Any:
        x.mul_(2)
        part.add_(1)
        return x.sum(), part * 3

    ours, theirs = torch.arange(12.0).reshape(4, 3), torch.arange(12.0).reshape(4, 3)
    compiled = torch.compile(function, backend="graphc")
    for _ in range(2):
        torch.testing.assert_close(compiled(ours, ours[1:3]), function(theirs, theirs[1:3]))
        assert torch.equal(ours, theirs)


class Cache(torch.nn.Module):
    """Keys that are kept, one more in each call."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(2, 64, 8))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, new: Any, place: Any) -> Any:
        self.count += 1
        self.keys.index_copy_(1, place, new)
        return torch.softmax(new @ self.keys.transpose(1, 2), -1) @ self.keys + self.count


@pytest.mark.parametrize("weights", ["live", "frozen"])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_cache_is_written_by_each_call(weights: str, mode: Any, within: list[int]):
    ours, theirs = Cache(), Cache()
    compiled = torch.compile(ours, backend="graphc", options={"weights": weights})
    with mode():
        for place in (0, 1, 5, 63):
            args = torch.rand(2, 1, 8), torch.tensor([place])
            torch.testing.assert_close(compiled(*args), theirs(*args))
        assert torch.equal(ours.keys, theirs.keys) and ours.count == 4
        with pytest.raises(IndexRangeError):
            compiled(torch.rand(2, 1, 8), torch.tensor([64]))
        assert torch.equal(ours.keys, theirs.keys) and ours.count == 4, "nothing is written by a call that fails"
    assert within == [2]


def test_running_statistics_are_written_in_training(within: list[int]):
    ours, theirs = (torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 2)) for _ in "ab")
    theirs.load_state_dict(ours.state_dict())
    compiled = torch.compile(ours, backend="graphc")
    for _ in range(3):
        x = torch.rand(8, 3)
        for model in (compiled, theirs):
            model(x).square().sum().backward()
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict())
    grads = ([p.grad for p in m.parameters()] for m in (ours, theirs))
    torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-5)
    assert within[0] == 3 and ours[0].num_batches_tracked == 3


def test_where_pytorch_computes_a_part_it_writes_too():
    def function(x: Any, new: Any) -> Any:
        y = torch.special.erfcx(torch.tanh(x) * 2)
        x.index_copy_(1, PLACES, new + y.sum() * 2)
        return torch.tanh(x) + 1

    with pytest.warns(FallbackWarning):
        agree(function, torch.rand(2, 5, 3), torch.rand(2, 2, 3))


def test_what_is_written_is_compared_too(within: list[int]):
    agree(FUNCTIONS["of slices"], torch.rand(2, 5, 3), torch.rand(2, 2, 3), options={"check": True})
    assert within == [0], "PyTorch's own call needs what was there"


PROTECTED = """
import ctypes, mmap, torch
memory = mmap.mmap(-1, 16 * mmap.PAGESIZE)
width = mmap.PAGESIZE // 4
keys = torch.frombuffer(memory, dtype=torch.float32).reshape(1, 16, width)

def update(keys, new, place):
    keys.index_copy_(1, place, new)
    return (keys * 2).sum()

compiled = torch.compile(update, backend="graphc", options={"fallback": "error"})
new = torch.ones(1, 1, width)
compiled(keys, new, torch.tensor([2]))
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
for page in range(16):
    if page != 7:
        assert libc.mprotect(keys.data_ptr() + page * mmap.PAGESIZE, mmap.PAGESIZE, mmap.PROT_READ) == 0
print(compiled(keys, new, torch.tensor([7])).item() == 4 * width, flush=True)
compiled(keys, new, torch.tensor([8]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="protects pages of memory")
def test_nothing_but_the_slice_is_written():
    done = subprocess.run([sys.executable, "-c", PROTECTED], capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr[-2000:]
    assert done.returncode < 0, "a write to another place does end the process"
