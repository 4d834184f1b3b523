"""examples/generate.py: one model file takes blocks and single tokens, and draws the same tokens as eager mode."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.ir.graph.interpret import bind
from graphc.lowering.program import lower_graph
from graphc.passes.pipeline import optimize
from tests.examples.run_example import ROOT, run_example
from tests.lowering.test_in_place import stored

sys.path.append(str(ROOT / "examples"))  # where a program finds its neighbours
from examples.decoder import ROWS, Decoder
from examples.generate import main
from examples.generator import Generator, settings


def test_a_short_run_draws_what_eager_mode_draws(tmp_path: Path):
    options = ("--steps", "3", "--tokens", "20", "--prompt", "x" * 70, "--json", "--out", str(tmp_path))
    facts = json.loads(run_example("generate.py", *options, folder=tmp_path))
    assert (tmp_path / "generate.gcm").is_file() and facts["loss"] > 0
    assert [run["rows"] for run in facts["runs"]] == [1, 8]
    for run in facts["runs"]:
        assert run["same_as_eager"] and min(run["tokens_per_second"], run["prompt_tokens_per_second"]) > 0
        assert all(len(text) == 20 for text in run["texts"])
    assert len(set(facts["runs"][1]["texts"])) == 8


@pytest.mark.slow
def test_what_is_printed(tmp_path: Path):
    output = run_example("generate.py", "--steps", "1", "--tokens", "5", "--out", str(tmp_path), folder=tmp_path)
    assert output.count("eager mode draws the same: True") == 2 and output.count("  'def main(") == 9


def test_what_is_not_likely_enough_is_never_drawn():
    gc.manual_seed(0)
    generator = Generator(Decoder(32, 2, 1)).eval()
    tokens = gc.tensor(np.arange(8 * 5).reshape(8, 5))
    with gc.no_grad():
        logits = generator.decoder.head(generator.decoder.hidden(tokens, 0)[:, -1])
    order = logits.argsort(-1, descending=True).numpy()
    shares = logits.softmax(-1).sort(-1, descending=True).values.cumsum(-1).numpy()

    def drawn(**changed: Any) -> np.ndarray:
        choice = settings(**changed)
        with gc.no_grad():
            draws = np.stack([generator(tokens, 0, *choice).numpy()[:, 0] for _ in range(60)], axis=1)
        return np.array([[list(row).index(t) for t in ts] for row, ts in zip(order, draws, strict=True)])

    assert (drawn(top_k=1) == 0).all() and (drawn(temperature=1e-4) == 0).all()
    assert drawn(top_k=5).max() == 4 and drawn().max() > 50
    last = [np.searchsorted(row, 0.3) for row in shares]
    assert (drawn(top_p=0.3) <= np.array(last)[:, None]).all()


def test_one_program_writes_the_new_tokens_and_reads_what_is_used():
    gc.manual_seed(0)
    generator = Generator(Decoder(32, 2, 1)).eval()
    dims = {
        "tokens": (gc.Dim("rows", 1, 8, hint=1), gc.Dim("count", 1, 64, hint=1)),
        "position": gc.Dim("position", 0, 448),
    }
    graph = gc.trace(generator, gc.zeros(1, 2, dtype=gc.int64), 128, *settings(), dims=dims)
    assert not graph.assumptions
    for rows, count, position in ((1, 1, 300), (8, 64, 64), (3, 17, 0)):
        program = lower_graph(bind(optimize(graph), {"rows": rows, "count": count, "position": position}))
        caches = {s.name: s for s in program.storages if s.cls == "state" and s.shape[0] == ROWS}
        assert len(caches) == 2
        for name in caches:
            assert stored(program, name) == rows * 2 * count * 16

    compiled, results = gc.compile(generator, dims=dims), []
    for model in (generator, compiled):
        gc.manual_seed(1)
        with gc.no_grad():
            sizes = ((8, 64, 0), (8, 13, 64), (8, 1, 77), (8, 1, 78), (1, 7, 0), (3, 1, 7))
            drawn = [model(gc.zeros(r, n, dtype=gc.int64), position, *settings()) for r, n, position in sizes]
        results.append([token.numpy().tolist() for token in drawn])
    assert results[0] == results[1] and len(compiled.variants) == 1


@pytest.mark.parametrize("arguments", [["--prompt", "a" * 500], ["--prompt", ""], ["--tokens", "1"]])
def test_what_cannot_be_generated_is_refused(arguments: list[str], capsys: pytest.CaptureFixture):
    with pytest.raises(SystemExit):
        main(arguments)
    assert "error: " in capsys.readouterr().err
