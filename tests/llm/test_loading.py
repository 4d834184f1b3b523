"""Loading of decoders: every block format, and errors for weights that do not fit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import llm
from graphc.errors import ArgumentError, ArtifactError
from graphc.llm.block_layers import BlockLinear
from graphc.llm.blocks import FORMATS
from tools.damage.language_models import CONFIG, make_folder, sweep
from tools.gguf_files import write_random_decoder

TOKENS = [[5, 8, 13, 21, 34]]


@pytest.mark.parametrize("kind", [k.name for k in FORMATS.values()])
def test_logits_are_those_of_the_elements_of_the_file(kind: str, tmp_path: Path):
    model = llm.load(write_random_decoder(tmp_path / "model.gguf", (kind,)))
    quantized = [m for m in model.modules() if isinstance(m, BlockLinear)]
    assert len(quantized) == (0 if FORMATS_OF[kind].unpack is None else 14)
    tokens = gc.tensor(TOKENS)
    with gc.no_grad():
        from_codes = model(tokens).numpy()
        from_floats = model.train()(tokens).numpy()
    np.testing.assert_allclose(from_codes, from_floats, atol=1e-4 * np.abs(from_floats).max())
    assert from_codes.std() > 0


FORMATS_OF = {k.name: k for k in FORMATS.values()}


def test_a_folder_loads_what_was_saved(tmp_path: Path):
    pytest.importorskip("safetensors", reason="reads safetensors files")
    folder = make_folder(tmp_path / "model")
    model = llm.load(folder, places=100, rows=2)
    assert (model.places, model.rows, model.config.tied) == (128, 2, True)
    assert model(gc.tensor(TOKENS)).shape == (1, 5, 64)


def test_folders_that_do_not_fit(tmp_path: Path):
    pytest.importorskip("safetensors", reason="reads safetensors files")
    folder = make_folder(tmp_path / "model")
    for change, message in (
        ({"num_hidden_layers": 3, "layer_types": None}, "'layers.2.self_attn.q_proj.weight' is missing"),
        ({"num_hidden_layers": 1}, "unknown weights: layers.1."),
        ({"vocab_size": 65}, "has shape .64, 32., not .65, 32."),
    ):
        (folder / "config.json").write_text(json.dumps({**CONFIG, **change}))
        with pytest.raises(ArtifactError, match=message):
            llm.load(folder)
    (folder / "config.json").write_text("[")
    with pytest.raises(ArtifactError, match="not readable JSON"):
        llm.load(folder)


def test_wrong_arguments(tmp_path: Path):
    path = write_random_decoder(tmp_path / "model.gguf")
    with pytest.raises(ArgumentError, match="places is 0"):
        llm.load(path, places=0)
    with pytest.raises(FileNotFoundError):
        llm.load(tmp_path / "absent.gguf")


def test_damaged_files_raise_errors_of_graphc(tmp_path: Path):
    pytest.importorskip("safetensors", reason="reads safetensors files")
    outcomes = sweep(80, 1, tmp_path)
    assert sum(outcomes.values()) == 80 and outcomes["ArtifactError"] > 40
