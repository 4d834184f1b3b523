"""Model files whose inputs have named dimensions."""

from __future__ import annotations

import re

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.compiler.stages import Stages
from graphc.errors import ArgumentError, IndexRangeError, ShapeError
from graphc.files import model_content
from graphc.fusion.text import parse_plan, print_plan
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import print_graph
from graphc.ir.kernel.parse import parse_program
from graphc.ir.kernel.text import print_program
from graphc.models import model_programs, sized_model
from tests.models.model_files import refuse_all_sizes

BATCH, TIME = gc.Dim("batch", 1, 64, hint=4), gc.Dim("time", 1, 100, hint=8)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.gcm"


class Counting(nn.Module):
    """Writes to a state and returns what several outputs are made of."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)
        self.register_buffer("seen", gc.zeros(()))

    def forward(self, x, mask):
        self.seen += x.shape[0]
        return {"y": self.fc(x) * mask.unsqueeze(-1), "mean": x.mean(1), "seen": self.seen.clone()}


def check(loaded, model):
    for batch, time in ((1, 1), (2, 5), (64, 3), (3, 100)):
        x, mask = np.random.rand(batch, time, 8).astype(np.float32), np.ones((batch, time), np.float32)
        result = loaded(x, mask=mask)
        with gc.no_grad():
            expected = model(gc.tensor(x), gc.tensor(mask))
        assert result.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(result[name], value.numpy(), rtol=1e-5, atol=1e-6)


def test_a_loaded_model_takes_all_sizes(path):
    model = Counting().eval()
    made = gc.export(
        model, gc.ones(2, 3, 8), gc.ones(2, 3), path=path, dims={"x": (BATCH, TIME), "mask": (BATCH, TIME)}
    )
    assert [str(s) for s in made.inputs] == ["x: f32[batch,time,8]", "mask: f32[batch,time]"]
    assert [d.name for d in made.dims] == ["batch", "time"] and not made.assumptions
    assert model_content.load(path).manifest == made
    loaded = gc.load(path)
    check(loaded, model)
    assert sized_model.SizesOfModel(loaded.spec).by_name([np.ones((2, 5, 8)), np.ones((2, 5))]) == {
        "batch": 2,
        "time": 5,
    }
    assert loaded.plan(batch=2, time=3).arena <= loaded.plan(batch=64, time=100).arena
    with pytest.raises(ArgumentError, match="no dimension rows"):
        loaded.plan(rows=2)


def test_where_there_is_no_program_for_all_sizes_each_has_its_own(path, monkeypatch):
    refuse_all_sizes(monkeypatch)
    monkeypatch.setenv("GRAPHC_PROGRAMS", "2")
    model = Counting().eval()
    gc.export(model, gc.ones(2, 3, 8), gc.ones(2, 3), path=path, dims=[(BATCH, TIME), (BATCH, TIME)])
    loaded = gc.load(path)
    check(loaded, model)
    check(loaded, model)
    assert loaded.seconds and loaded.plan(batch=2, time=3).signature[0] == "x: f32[2,3,8]"


def test_sizes_that_do_not_fit_are_told_by_name(path):
    gc.export(nn.Linear(8, 4), gc.ones(2, 8), path=path, dims=[(BATCH,)])
    loaded = gc.load(path)
    with pytest.raises(ShapeError, match=r"batch is 65, outside of 1\.\.64"):
        loaded(np.ones((65, 8), np.float32))
    with pytest.raises(ShapeError):
        loaded(np.ones((5, 7), np.float32))
    with pytest.raises(ArgumentError):
        loaded(np.ones((5, 8), np.float32), np.ones(3, np.float32))


def test_what_a_trace_assumed_is_kept_and_checked(path):
    def f(x):
        return x * 2 if x.shape[0] > 10 else x + 1

    made = gc.export(f, gc.ones(3), path=path, dims=[(BATCH,)])
    assert [str(a).partition(" (asked at")[0] for a in made.assumptions] == ["batch <= 10"]
    assert "test_sized_model.py" in made.assumptions[0].place
    loaded = gc.load(path)
    assert loaded(np.ones(10, np.float32)).tolist() == [2.0] * 10
    with pytest.raises(ShapeError, match=r"f was traced for batch <= 10 .*but was called with batch = 11"):
        loaded(np.ones(11, np.float32))


def test_a_file_without_dimensions_says_nothing_of_them(path):
    gc.export(nn.Linear(8, 4), gc.ones(2, 8), path=path)
    assert b'"dims"' not in path.read_bytes() and b'"assumptions"' not in path.read_bytes()


def test_a_graph_is_written_with_its_dimensions(path):
    graph = gc.trace(lambda x: x * 2 if x.shape[0] > 2 else x, gc.ones(4), dims=[(BATCH,)])
    made = gc.export(graph, path=path)
    assert [(d.low, d.high) for d in made.dims] == [(3, 64)] and not made.assumptions
    loaded = gc.load(path)
    assert loaded(np.ones(3, np.float32)).tolist() == [2.0] * 3
    with pytest.raises(ShapeError, match="batch is 2"):
        loaded(np.ones(2, np.float32))


class Cache(nn.Module):
    """Writes at a place, and gives the sum of what was written up to it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("kept", gc.zeros(20, 4))

    def forward(self, x, pos: int):
        self.kept[pos] = x
        return self.kept[: pos + 1].sum(0)


@pytest.mark.parametrize("native", [False, True])
def test_a_model_file_takes_numbers(path, native):
    manifest_ = gc.export(Cache(), gc.zeros(4), 3, path=path, native=native, dims={"pos": gc.Dim("pos", 0, 19)})
    assert [str(spec) for spec in manifest_.inputs] == ["x: f32[4]", "pos: int = pos"]
    loaded, model = gc.load(path, trust=native), Cache()
    for pos in (0, np.int64(1), 19, np.array(7), 0):
        x = np.random.rand(4).astype(np.float32)
        np.testing.assert_allclose(loaded(x, pos), model(gc.tensor(x), int(pos)).numpy(), rtol=1e-5)
    np.testing.assert_allclose(loaded(pos=3, x=x), model(gc.tensor(x), 3).numpy(), rtol=1e-5)
    np.testing.assert_allclose(loaded(gc.tensor(x), 4).numpy(), model(gc.tensor(x), 4).numpy(), rtol=1e-5)
    for wrong, message in {20: "pos is 20, outside of 0..19", True: "pos is a whole number, not bool True"}.items():
        with pytest.raises(ArgumentError, match=message):
            loaded(x, wrong)
    with pytest.raises(ArgumentError, match=r"not float 2\.0"):
        loaded(x, 2.0)


def test_where_there_is_no_program_for_all_numbers_each_has_its_own(path, monkeypatch):
    gc.export(Cache(), gc.zeros(4), 3, path=path, dims={"pos": gc.Dim("pos", 0, 19)})
    monkeypatch.setattr(model_programs, "compile_on", refusing(model_programs.compile_on))
    refuse_all_sizes(monkeypatch)
    loaded, model = gc.load(path), Cache()
    for pos in (0, 4, 19, 0):
        x = np.random.rand(4).astype(np.float32)
        np.testing.assert_allclose(loaded(x, pos), model(gc.tensor(x), pos).numpy(), rtol=1e-5)


def refusing(compile_on):
    """A compiler without programs for all sizes."""

    def compile_fixed(graph, *more):
        assert not graph.dims
        return compile_on(graph, *more)

    return compile_fixed


def per_size(path, monkeypatch, function, *examples, dims):
    """A loaded model of which each size has a program."""
    gc.export(function, *examples, path=path, dims=dims)
    refuse_all_sizes(monkeypatch)
    return gc.load(path)


def test_programs_of_one_size_say_what_is_wrong_in_a_call(path, monkeypatch):
    table = gc.rand(7, 4)
    loaded = per_size(path, monkeypatch, lambda i: table[i] * 2, gc.tensor([1, 2, 3, 4]), dims=[(BATCH,)])
    assert loaded(np.array([0, 6])).shape == (2, 4)
    with pytest.raises(IndexRangeError, match=r"index 7 .* is out of range"):
        loaded(np.array([0, 7, 1]))


def test_sizes_are_looked_at_once_in_a_call(path, monkeypatch):
    loaded = per_size(path, monkeypatch, lambda x: x * 2 if x.shape[0] > 2 else x, gc.ones(4), dims=[(BATCH,)])
    assert loaded.manifest.assumptions
    looked = []
    solve = sized_model.SizesOfModel.of
    monkeypatch.setattr(sized_model.SizesOfModel, "of", lambda self, arrays: looked.append(1) or solve(self, arrays))
    assert loaded(np.ones(5, np.float32)).tolist() == [2.0] * 5 and looked == [1]
    with pytest.raises(ShapeError, match="was traced for"):
        loaded(np.ones(1, np.float32))


def test_a_file_takes_its_own_examples(path):
    """It was traced for the hint 32, which takes the other branch."""
    samples = gc.Dim("samples")
    example = gc.rand(1, 1000)
    gc.export(lambda x: x[:, : max(x.shape[1] // 256, 1)] * 2, example, path=path, dims={"x": (BATCH, samples)})
    loaded = gc.load(path)
    assert loaded(example.numpy()).shape == (1, 3) and loaded(np.ones((2, 4000), np.float32)).shape == (2, 15)
    with pytest.raises(ShapeError, match=r"was traced for .*samples = 20\n.*with examples of these sizes"):
        loaded(np.ones((1, 20), np.float32))


@pytest.mark.parametrize("name", ["class", "in", "0_0", "?", "-1", "i0", "batch size", "a, b]", "2*s + 1", "élan"])
def test_dimensions_have_any_name_in_every_stage(path, name):
    dims = {"x": (gc.Dim(name), None), "y": (2 * gc.Dim(name),)}
    graph = gc.trace(lambda x, y: (x @ x.mT).sum(0) + y[: x.shape[0]], gc.ones(3, 4), gc.ones(6), dims=dims)
    assert print_graph(parse_graph(print_graph(graph))) == print_graph(graph)
    stages = Stages(graph)
    assert print_plan(parse_plan(stages.text("fused"))) == stages.text("fused")
    for program in (stages.lowered, stages.scheduled):
        assert print_program(parse_program(print_program(program))) == print_program(program)
    manifest = gc.export(graph, path=path, native=True)
    assert [d.name for d in manifest.dims] == [name] and manifest == model_content.load(path).manifest
    loaded = gc.load(path, trust=True)
    for n in (1, 5):
        assert loaded(np.ones((n, 4), np.float32), np.ones(2 * n, np.float32)).tolist() == [4.0 * n + 1] * n
    with pytest.raises(ShapeError, match=re.escape(f"not 10 = 2*{gc.Dim(name)}")):
        loaded(np.ones((5, 4), np.float32), np.ones(9, np.float32))


TRANSPOSED = gc.Dim("length", 2, 40), gc.Dim("kernel", 1, 9)


def transposed(x, weight):
    """A pass compares the stride with the kernel, which is an argument."""
    return nn.functional.conv_transpose1d(x, weight, stride=3, padding=1)


def check_transposed(loaded):
    for length, kernel in ((8, 3), (11, 3), (9, 2), (7, 5), (3, 9), (5, 1)):
        x, weight = gc.rand(2, 3, length), gc.rand(3, 4, kernel)
        assert gc.allclose(gc.tensor(loaded(x.numpy(), weight.numpy())), transposed(x, weight), atol=1e-5)


@pytest.mark.parametrize("native", [False, True])
def test_a_question_of_a_pass_gives_a_program_for_each_answer(path, native, caplog):
    length, kernel = TRANSPOSED
    examples, dims = (gc.rand(2, 3, 8), gc.rand(3, 4, 3)), [(None, None, length), (None, None, kernel)]
    manifest = gc.export(transposed, *examples, path=path, dims=dims, native=native)
    assert not manifest.assumptions
    code = [[str(a).partition(" (")[0] for a in code.assumptions] for code in manifest.first.natives]
    assert code == ([["3 <= kernel"]] if native else [])
    loaded = gc.load(path, trust=native)
    assert (loaded.seconds is None) == native
    check_transposed(loaded)
    programs = loaded.entry("forward").program._programs
    assert len(programs) == 2 and "compiled for each size" not in caplog.text
    assert loaded.plan(length=2, kernel=9).arena < loaded.plan(length=40, kernel=9).arena


def test_programs_for_both_answers_are_in_the_cache(path, tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path / "cache"))
    length, kernel = TRANSPOSED
    examples, dims = (gc.rand(2, 3, 8), gc.rand(3, 4, 3)), [(None, None, length), (None, None, kernel)]
    gc.export(transposed, *examples, path=path, dims=dims)
    check_transposed(gc.load(path))
    monkeypatch.setattr(model_programs, "Stages", None)  # nothing is compiled
    check_transposed(loaded := gc.load(path))
    assert list(loaded.seconds or ()) == ["cache"]
