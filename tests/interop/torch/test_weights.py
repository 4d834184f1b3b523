"""Preparation of weights, and its repetition after each kind of write between two calls."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from tests.interop.torch.packing import PRODUCT, packed_or_skip, prepared_arrays

torch = pytest.importorskip("torch")
program: Any = pytest.importorskip("graphc.interop.torch.program")
N = 64
X = torch.randn(8, N) if torch else None


@pytest.fixture(autouse=True)
def packed_weights() -> None:
    packed_or_skip(N)


def product(watch: str, w: Any, b: Any) -> Any:
    """A program of a product whose matrix is packed, while its bias is read where it lies."""
    x = X[:, : len(w)]
    return program.TorchProgram(PRODUCT, [x, w, b], [torch.addmm(b, x, w)], {1, 2}, watch)


def weight() -> Any:
    return torch.nn.Parameter(torch.randn(N, N)), torch.nn.Parameter(torch.randn(N))


def _data(w: Any) -> None:
    w.data.mul_(2)


def _numpy(w: Any) -> None:
    w.detach().numpy()[3, 5] += 1


def _dlpack(w: Any) -> None:
    torch.from_dlpack(w.detach())[-1, -1] = 7


def _replaced(w: Any) -> None:
    w.data = torch.randn(N, N)


def _optimizer(w: Any) -> None:
    w.grad = torch.ones_like(w)
    torch.optim.SGD([w], lr=0.1, foreach=True).step()


def _copied(w: Any) -> None:
    w.copy_(torch.randn(N, N))


def _loaded(w: Any) -> None:
    holder = torch.nn.Module()
    holder.w = w
    holder.load_state_dict({"w": torch.randn(N, N)})


def _bytes(w: Any) -> None:
    view = memoryview(w.detach().numpy()).cast("B")
    view[-1] ^= 0x80


def _exchanged(w: Any) -> None:
    w.data[[0, 1]] = w.data[[1, 0]]


def _negated(w: Any) -> None:
    w.neg_()


WRITES = [
    *(_data, _numpy, _dlpack, _replaced, _optimizer, _copied, _loaded, _bytes, _exchanged, _negated),
]


@pytest.mark.parametrize("write", WRITES, ids=lambda w: w.__name__)
@torch.no_grad()
def test_a_write_of_any_kind_between_two_calls_is_seen(write: Callable[[Any], None]):
    w, b = weight()
    run = product("live", w, b)
    for _ in range(2):
        torch.testing.assert_close(run([X, w, b])[0], torch.addmm(b, X, w))
    assert prepared_arrays(run)
    write(w)
    b.add_(1)
    torch.testing.assert_close(run([X, w, b])[0], torch.addmm(b, X, w))
    torch.testing.assert_close(run([X, w, b])[0], torch.addmm(b, X, w))


@torch.no_grad()
def test_nothing_is_prepared_while_nothing_is_written():
    w, b = weight()
    run = product("live", w, b)
    run([X, w, b])
    (made,) = prepared_arrays(run)
    run([X, w, b])
    assert prepared_arrays(run)[0] is made


@torch.no_grad()
def test_frozen_weights_are_prepared_once_for_each_place():
    w, b = weight()
    run = product("frozen", w, b)
    before = run([X, w, b])[0]
    w.mul_(2)
    assert torch.equal(run([X, w, b])[0], before)
    other = torch.nn.Parameter(w.detach().clone())
    torch.testing.assert_close(run([X, other, b])[0], torch.addmm(b, X, other))
    assert torch.equal(run([X, w, b])[0], before)


@pytest.mark.parametrize("watch", ["live", "frozen"])
@torch.no_grad()
def test_blocks_that_share_a_program_have_their_own_weights(watch: str):
    blocks = [weight() for _ in range(3)]
    run = product(watch, *blocks[0])
    for _ in range(2):
        for w, b in blocks:
            torch.testing.assert_close(run([X, w, b])[0], torch.addmm(b, X, w))
    assert len(prepared_arrays(run)) == 3


@torch.no_grad()
def test_writes_are_seen_where_blocks_take_turns():
    blocks = [weight(), weight()]
    run = product("live", *blocks[0])
    for _ in range(12):  # so long that pages are watched, too, where the system can
        for w, b in blocks:
            run([X, w, b])
    for w, b in blocks * 2:
        _data(w)
        torch.testing.assert_close(run([X, w, b])[0], torch.addmm(b, X, w))


@torch.no_grad()
def test_weights_that_are_gone_or_lie_elsewhere_are_not_kept():
    w, b = weight()
    run = product("live", w, b)
    run([X, w, b])
    kept = weakref.ref(prepared_arrays(run)[0])
    w.data = torch.randn(N, N)
    run([X, w, b])
    gc.collect()
    assert kept() is None and len(prepared_arrays(run)) == 1


@torch.no_grad()
def test_programs_share_what_they_prepare_of_the_same_weights():
    w, b = weight()
    first, second = product("live", w, b), product("live", w, b)
    first([X, w, b])
    second([X, w, b])
    assert prepared_arrays(first)[0] is prepared_arrays(second)[0]
    w.add_(1)
    first([X, w, b])
    torch.testing.assert_close(second([X, w, b])[0], torch.addmm(b, X, w))
    assert prepared_arrays(first)[0] is prepared_arrays(second)[0]
    kept = weakref.ref(prepared_arrays(first)[0])
    del first, second
    gc.collect()
    assert kept() is None


@torch.no_grad()
def test_a_weight_that_is_not_dense_is_an_argument_like_others():
    whole, b = torch.randn(N, 2 * N), torch.randn(N)
    w = whole[:, :N]
    run = product("live", w, b)
    run([X, w, b])
    whole.mul_(2)
    torch.testing.assert_close(run([X, w, b])[0], torch.addmm(b, X, w))


@torch.no_grad()
def test_a_transposed_weight_is_taken_as_it_lies():
    w, b = torch.randn(N, N).t(), torch.randn(N)
    run = product("live", w, b)
    torch.testing.assert_close(run([X, w, b])[0], torch.addmm(b, X, w))
    w.mul_(2)
    torch.testing.assert_close(run([X, w, b])[0], torch.addmm(b, X, w))


class Remembering(torch.nn.Module):
    """Writes to a buffer that it multiplies by, and normalizes by running statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("state", torch.randn(N, N))
        self.norm = torch.nn.BatchNorm1d(N)

    def forward(self, x: Any) -> Any:
        result = self.norm(x @ self.state.t())
        self.state.add_(1)
        return result


@pytest.mark.parametrize("watch", ["live", "frozen"])
@torch.no_grad()
def test_what_a_model_itself_writes_to_its_buffers_is_seen(watch: str):
    torch._dynamo.reset()
    model = Remembering()
    expected = copy.deepcopy(model)
    run = torch.compile(model, backend="graphc", options={"weights": watch})
    for training in (False, False, True, False, True, False):
        model.train(training)
        expected.train(training)
        torch.testing.assert_close(run(X), expected(X), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(model.state_dict(), expected.state_dict())


@torch.no_grad()
def test_writes_through_other_tensors_in_the_memory_of_a_buffer_are_seen_where_pytorch_counts_them():
    w = torch.randn(N, N)
    _, b = weight()
    run = product("frozen", w, b)
    for _ in range(4):
        torch.testing.assert_close(run([X, w, b])[0], torch.addmm(b, X, w))
        w = w.data.mul_(0.5)


@torch.no_grad()
def test_a_call_that_ends_early_does_not_hide_a_write_from_the_next_one(monkeypatch: pytest.MonkeyPatch):
    w, (_, b) = torch.randn(N, N), weight()
    run = product("frozen", w, b)
    run([X, w, b])
    w.mul_(2)

    def end(_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("graphc.compiler.contents.ContentComparison.look", end)
        run([X, w, b])
    torch.testing.assert_close(run([X, w, b])[0], torch.addmm(b, X, w))
