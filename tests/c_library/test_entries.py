"""Plans of libraries: what entries share, and what they are called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.base.errors import ArgumentError, CompileError
from graphc.c_library import entries
from graphc.c_library.build import build_library
from graphc.nn import functional as F
from tests.c_library.nets import policy


class Halves(nn.Module):
    """A model of two entries over one weight and one state."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Linear(32, 32)
        self.register_buffer("code", graphc.zeros(1, 32))

    def encode(self, x: Any) -> Any:
        self.code.copy_(self.weight(x))
        return self.code.sum()

    def decode(self, x: Any) -> Any:
        return self.weight(x) + self.code


def halves() -> dict[str, graphc.Entry]:
    model = Halves()
    return {name: graphc.Entry(getattr(model, name), graphc.rand(1, 32)) for name in ("encode", "decode")}


def loaded(library: Any) -> Any:
    namespace: dict[str, Any] = {"__file__": str(library.files["py"])}
    exec(library.files["py"].read_text(), namespace)
    return namespace["Model"]()


def test_entries_share_states_and_hold_equal_weights_once(tmp_path: Path):
    both = halves()
    library = build_library(both, path=tmp_path / "both.so", emit=("so", "h", "py"))
    assert list(library.entries) == ["encode", "decode"] and library.context_bytes == 64 + 128
    one = build_library({"decode": both["decode"]}, path=tmp_path / "one.so")
    assert library.weight_bytes < 1.5 * one.weight_bytes
    graphc.export(both, path=tmp_path / "both.gcm")
    wanted, found = graphc.load(tmp_path / "both.gcm"), loaded(library)
    x = np.random.default_rng(0).standard_normal((1, 32)).astype(np.float32)
    for entry in ("decode", "encode", "decode"):
        assert np.array_equal(getattr(found, entry)(x), wanted.entry(entry)(x)), entry
    again = build_library(tmp_path / "both.gcm", path=tmp_path / "again.so", entries=["encode"], name="both")
    assert list(again.entries) == ["encode"]


@pytest.mark.parametrize("numbers", [(1.0, 2.0), (0.0, 2.0), (1.0, 0.0), (0.0, 0.0), (1.0, -0.0)])
def test_zeros_at_the_end_of_the_states_are_not_stored(numbers: tuple[float, ...], tmp_path: Path):
    class Sums(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, number in zip("ab", numbers, strict=True):
                self.register_buffer(name, graphc.full((1024,), number))

        def forward(self, x: Any) -> Any:
            for state in (self.a, self.b):
                state.copy_(state + x)
            return graphc.stack([self.a, self.b])

    library = build_library(Sums(), graphc.zeros(1024), path=tmp_path / "sums.so", emit=("so", "py"))
    stored = max((n for n, x in enumerate(numbers, 1) if np.signbit(x) or x), default=0)
    assert library.weight_bytes == 4096 * stored and library.context_bytes == 64 + 2 * 4096
    found, x = loaded(library), np.ones(1024, np.float32)
    start = found.save_state()
    for _ in range(2):
        for count in (1, 2):
            assert np.array_equal(found.run(x)[:, 0], np.add(numbers, count))
        found.call("reset_state", found.context)
        assert np.array_equal(found.save_state(), start)


def test_a_library_trains(tmp_path: Path):
    graphc.manual_seed(1)
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    step = graphc.compile_step(net, F.cross_entropy, graphc.optim.Adam(net.parameters(), lr=1e-2))
    x, y = np.random.default_rng(0).random((8, 6), np.float32), np.arange(8) % 3
    both = {"infer": graphc.Entry(net, x, train=False), "train_step": graphc.Entry(step, x, y)}
    library = build_library(both, path=tmp_path / "learner.so", emit=("so", "py"))
    graphc.export(both, path=tmp_path / "learner.gcm")
    wanted, found = graphc.load(tmp_path / "learner.gcm"), loaded(library)
    for _ in range(5):
        assert np.array_equal(found.train_step(x, y), wanted.entry("train_step")(x, y))
    assert np.array_equal(found.infer(x), wanted.entry("infer")(x))


@pytest.mark.parametrize("name", ["init", "save_state", "größe"])
def test_names_of_entries_are_those_of_functions(name: str, tmp_path: Path):
    with pytest.raises(ArgumentError, match="cannot be called"):
        build_library({name: graphc.Entry(policy(), graphc.rand(1, 17))}, path=tmp_path / "net.so")


def test_names_that_make_one_function_twice_are_refused(tmp_path: Path):
    model = policy()
    both = {name: graphc.Entry(model, graphc.rand(1, 17)) for name in ("act", "act_inputs")}
    with pytest.raises(ArgumentError, match="net_act_inputs"):
        build_library(both, path=tmp_path / "net.so")


def test_a_model_without_one_program_for_all_sizes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    class Failing:
        def __init__(self, *_: Any, **__: Any):
            raise CompileError("it depends")

    monkeypatch.setattr(entries, "Stages", Failing)
    batch = graphc.Dim("batch", max=8)
    with pytest.raises(CompileError, match=r"one program for all sizes of batch, and \S+ has none: it depends"):
        build_library(policy(), graphc.rand(1, 17), path=tmp_path / "net.so", dims=[(batch,)])


def test_numbers_that_are_sizes_are_filled_in(tmp_path: Path):
    class Repeats(nn.Module):
        def forward(self, x: Any, count: int) -> Any:
            return x.reshape(1, 4).expand(count, 4) * 2

    count = graphc.Dim("count", max=100)
    model = Repeats()
    library = build_library(
        model, graphc.rand(4), 3, path=tmp_path / "repeats.so", emit=("so", "h", "py"), dims=[(), count]
    )
    header = library.files["h"].read_text()
    assert "repeats_run(const repeats_t *net, int64_t count, const float *x, float *output," in header
    x = np.arange(4, dtype=np.float32)
    assert np.array_equal(loaded(library).run(x, count=5), np.tile(2 * x, (5, 1)))


def test_sizes_that_a_pass_assumes_otherwise_are_refused(tmp_path: Path):
    """Its code for kernels of at least the stride would read outside of a shorter one."""

    def transposed(x: Any, weight: Any) -> Any:
        return F.conv_transpose1d(x, weight, stride=3, padding=1)

    dims = [(None, None, graphc.Dim("length", 2, 40)), (None, None, graphc.Dim("kernel", 1, 9))]
    examples = graphc.rand(2, 3, 8), graphc.rand(3, 4, 3)
    library = build_library(transposed, *examples, path=tmp_path / "net.so", emit=("so", "h", "py"), dims=dims)
    assert "where 3 <= kernel" in library.files["h"].read_text()
    model = loaded(library)
    for kernel in (3, 5, 9):
        x, weight = graphc.rand(2, 3, 7), graphc.rand(3, 4, kernel)
        assert np.allclose(model.run(x.numpy(), weight.numpy()), transposed(x, weight).numpy(), atol=1e-5)
    with pytest.raises(ValueError, match="size of a named dimension"):
        model.run(x.numpy(), np.ones((3, 4, 2), np.float32))
