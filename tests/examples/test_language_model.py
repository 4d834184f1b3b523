"""examples/language_model: a C program continues texts as ``Generator.greedy`` does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import llm
from tests.c_library.conftest import STRICT, run_tool, tool_or_skip
from tests.examples.run_example import ROOT
from tools.gguf_files import write_random_decoder

SOURCE = ROOT / "examples" / "language_model" / "generate.c"
LONG = np.random.default_rng(0).integers(0, 300, 70).tolist()
"""Longer than a block."""
SHORT = [5, 8, 13]


@pytest.mark.parametrize("kinds", [("Q4_1",), ("F32",)], ids="-".join)
def test_tokens_are_those_of_the_generator(kinds: tuple[str, ...], tmp_path: Path):
    compiler = tool_or_skip("gcc", "cc")
    model = llm.load(write_random_decoder(tmp_path / "model.gguf", kinds), places=128)
    library = gc.build_library(model.entries(), path=tmp_path / "model.so")
    program, standard = tmp_path / "generate", ("-std=c99", "-D_POSIX_C_SOURCE=200112L")
    linked = (f"-I{tmp_path}", library.files["so"], f"-Wl,-rpath,{tmp_path}")
    run_tool(compiler, *standard, *STRICT, SOURCE, *linked, "-o", program)
    texts = [LONG, SHORT, SHORT, LONG]
    lines = run_tool(program, 6, *[word for text in texts for word in (*text, "/")]).splitlines()
    generator = llm.Generator(model)
    wanted = {len(text): list(generator.greedy(text, 6)) for text in (LONG, SHORT)}
    assert [[int(word) for word in line.split()] for line in lines] == [wanted[len(text)] for text in texts]
    assert len(run_tool(program, 200, *SHORT).split()) == 128 - len(SHORT), "the caches are full"
    with pytest.raises(AssertionError, match="out of range"):
        run_tool(program, 1, 300)


def test_the_program_is_short():
    assert len(SOURCE.read_text().splitlines()) <= 60
