"""Seeds, steps and streams of random numbers."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.base import module_path
from graphc.errors import ArgumentError, TraceError
from graphc.tensors.random.generator import Generator, stream_of


class Drawer:
    """A module that draws, with children."""

    def __init__(self, **children):
        self.children = children

    def named_modules(self):
        yield "", self
        yield from self.children.items()

    def __call__(self, count=1):
        module_path.enter(self)
        try:
            own = [graphc.rand(2).tolist() for _ in range(count)]
            return own + [x for child in self.children.values() for x in child()]
        finally:
            module_path.leave()


def test_seeds_repeat():
    g = Generator().manual_seed(5)
    first = graphc.rand(3, generator=g).tolist()
    assert graphc.rand(3, generator=g).tolist() != first
    assert graphc.rand(3, generator=Generator().manual_seed(5)).tolist() == first
    assert graphc.rand(3, generator=Generator().manual_seed(6)).tolist() != first
    assert g.initial_seed() == 5
    assert Generator().manual_seed(-1).initial_seed() == 2**64 - 1
    assert g.seed() == g.initial_seed()


def test_a_draw_outside_of_modules_is_a_step():
    g = Generator().manual_seed(0)
    for step in (1, 2, 3):
        graphc.rand(1, generator=g)
        assert g.get_state().tolist() == [0, step]


def test_draws_of_one_call_share_a_step_and_differ_by_path_and_number():
    graphc.manual_seed(0)
    model = Drawer(a=Drawer(), b=Drawer())
    values = model(count=2)
    assert graphc.get_rng_state().tolist() == [0, 1]
    assert len({tuple(v) for v in values}) == 4
    again = model(count=2)
    assert graphc.get_rng_state().tolist() == [0, 2]
    assert not {tuple(v) for v in values} & {tuple(v) for v in again}


def test_a_call_without_draws_is_no_step():
    graphc.manual_seed(0)
    Drawer()(count=0)
    assert graphc.get_rng_state().tolist() == [0, 0]


def test_other_modules_do_not_change_what_a_module_draws():
    graphc.manual_seed(0)
    b = Drawer(a=Drawer(), b=Drawer())()[-1]
    graphc.manual_seed(0)
    assert Drawer(a=Drawer(x=Drawer()), b=Drawer())()[-1] == b


def test_states():
    state = graphc.get_rng_state()
    first = graphc.rand(2)
    graphc.set_rng_state(state)
    assert graphc.rand(2).equal(first)
    g = pickle.loads(pickle.dumps(graphc.default_generator))
    assert g.get_state().equal(graphc.get_rng_state())
    with pytest.raises(ArgumentError, match=r"i64\[2\], got float32\[2\]"):
        graphc.set_rng_state(graphc.rand(2))


def test_wrong_seeds():
    for seed in (1.5, True, "x"):
        with pytest.raises(ArgumentError, match="must be an int"):
            graphc.manual_seed(seed)
    with pytest.raises(ArgumentError, match="64 bits"):
        graphc.manual_seed(1 << 64)
    with pytest.raises(ArgumentError, match="cpu"):
        Generator("cuda")


def test_streams_are_stable():
    assert stream_of("", 0) == 1118436394
    assert len({stream_of(p, n) for p in ("", "a", "a.b") for n in range(100)}) == 300


def test_seeding_inside_a_trace_is_refused():
    with pytest.raises(TraceError, match="seeding"):
        graphc.trace(lambda x: graphc.manual_seed(0) and x, graphc.ones(1))


def test_traced_draws_are_those_of_eager_mode():
    def function(x):
        return x + graphc.rand(2) + graphc.randn(2)

    graphc.manual_seed(3)
    traced = graphc.trace(function, graphc.zeros(2))
    assert graphc.get_rng_state().tolist() == [3, 0]
    from_graph = graphc.compile(function)(graphc.zeros(2))
    assert graphc.get_rng_state().tolist() == [3, 2]
    graphc.manual_seed(3)
    np.testing.assert_allclose(from_graph.numpy(), function(graphc.zeros(2)).numpy(), rtol=1e-6)
    assert [v.node.attrs["path"] for v in traced.inputs] == ["", "graphc.random"]


@pytest.mark.parametrize("way", ["eager", "compiled"])
def test_a_generator_that_is_drawn_from_first_in_a_trace_steps_on(way: str):
    generator = Generator()

    def draw(x):
        return x * graphc.rand(3, generator=generator)

    function = graphc.compile(draw) if way == "compiled" else draw
    found = [function(graphc.ones(3)).numpy() for _ in range(2)]
    other = Generator()
    np.testing.assert_array_equal(found, [graphc.rand(3, generator=other).numpy() for _ in range(2)])
    generator.manual_seed(5)
    np.testing.assert_array_equal(
        function(graphc.ones(3)).numpy(), graphc.rand(3, generator=other.manual_seed(5)).numpy()
    )


class Nested(nn.Module):
    """Draws before, in and behind a child that is called twice."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Dropout(0.5), nn.Dropout(0.5)
        self.child = nn.Sequential(nn.Dropout(0.5), nn.Linear(8, 8), nn.Dropout(0.5))

    def forward(self, x, early: bool = True):
        x = self.first(x) if early else x
        return self.last(self.child(self.child(x)))


@pytest.mark.parametrize("way", ["method", "member"])
def test_a_compiled_child_draws_what_it_draws_when_it_is_not_compiled(way: str):
    def numbers(compiled: bool) -> list[np.ndarray]:
        graphc.manual_seed(1)
        model = Nested()
        graphc.manual_seed(2)
        if compiled and way == "method":
            model.child.compile()
        elif compiled:
            model.child = graphc.compile(model.child)
        calls = [model(graphc.ones(4, 8), early=early) for early in (True, False, True)]
        calls.append(model.child(graphc.ones(4, 8)))
        model.eval()
        calls += [model(graphc.ones(4, 8)), model.train()(graphc.ones(4, 8)), graphc.rand(3)]
        return [call.numpy(force=True) for call in calls]

    for a, b in zip(numbers(True), numbers(False), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_compiled_function_draws_as_the_module_that_calls_it():
    def noisy(x):
        return x + graphc.rand(4)

    class Caller(nn.Module):
        def __init__(self, function):
            super().__init__()
            self.drop, self.function = nn.Dropout(0.5), function

        def forward(self, x):
            return self.function(self.drop(self.function(x)))

    def numbers(function) -> np.ndarray:
        graphc.manual_seed(3)
        model = Caller(function)
        return np.array([model(graphc.ones(4)).numpy() for _ in range(3)])

    np.testing.assert_allclose(numbers(graphc.compile(noisy)), numbers(noisy), rtol=1e-6)


def test_a_generator_says_its_seed_and_step():
    generator = Generator().manual_seed(7)
    assert repr(generator) == "Generator(seed=7, step=0)"
    graphc.rand(2, generator=generator)
    assert repr(generator) == "Generator(seed=7, step=1)"
