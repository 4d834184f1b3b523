"""examples/lora_finetune.py: a small random model learns a text, and its adapters return from their folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import graphc as gc
from examples.lora_finetune import main
from tools.gguf_files import write_random_decoder


def test_a_model_learns_a_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for name in ("tokenizers", "safetensors"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    file, text, out = write_random_decoder(tmp_path / "model.gguf"), tmp_path / "text.txt", tmp_path / "adapter"
    text.write_text("abcabcabcabc")
    options = {"text": text, "out": out, "steps": 5, "window": 6, "tokens": 0, "rank": 2, "lr": 1e-2}
    main([str(file), *(f"--{name}={value}" for name, value in options.items())])
    printed = capsys.readouterr().out
    losses = [float(loss) for loss in re.findall(r"of 5: loss ([\d.]+)", printed)]
    assert len(losses) == 5 and losses[-1] < losses[0]
    tokens = gc.tensor([gc.llm.load_tokenizer(file).encode(text.read_text())])
    models = gc.llm.load(file), gc.llm.load_lora(gc.llm.load(file), out)
    with gc.no_grad():
        before, after = (gc.nn.functional.cross_entropy(m(tokens[:, :6])[0], tokens[0, 1:7]) for m in models)
    assert after.item() < before.item()


def test_a_text_that_is_too_short(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    file, text = write_random_decoder(tmp_path / "model.gguf"), tmp_path / "text.txt"
    text.write_text("abc")
    with pytest.raises(SystemExit):
        main([str(file), "--text", str(text)])
    assert "pass --window 2 or less" in capsys.readouterr().err
