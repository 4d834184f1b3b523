"""The benchmark of adapters: a small random file, and the same losses as torch where it is installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import lora
from tools.gguf_files import write_random_decoder


def engines(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[dict]:
    file = str(write_random_decoder(folder / "model.gguf", ("Q4_1",)))
    assert lora.main([file, "--tokens", "8", "--rounds", "2", "--steps", "1", "--threads", "1", "--json"]) == 0
    return json.loads(capsys.readouterr().out)["engines"]


def test_losses_fall_without_a_peer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(lora, "find_library", lambda name: None)
    (own,) = engines(tmp_path, capsys)
    assert own["last"] < own["first loss"] and own["steps / s"] > 0


def test_losses_equal_those_of_torch(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for name in ("torch", "transformers", "accelerate", "gguf"):
        pytest.importorskip(name, reason="compares with transformers")
    own, peer = engines(tmp_path, capsys)
    for key in ("first loss", "last"):
        assert own[key] == pytest.approx(peer[key], rel=1e-4)
