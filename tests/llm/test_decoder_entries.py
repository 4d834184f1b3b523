"""Entries of a decoder: a library and a model file compute the logits of whole texts, and states can be reset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import llm
from graphc.errors import ArgumentError

CONFIG = {
    "model_type": "llama",
    "vocab_size": 256,
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 128,
}
TEXT = np.random.default_rng(0).integers(0, 256, 9).astype(np.int32)


@pytest.fixture(scope="module")
def model() -> llm.Decoder:
    gc.manual_seed(0)
    return llm.Decoder(llm.decoder_config(CONFIG), places=128)


def expected(model: llm.Decoder, count: int) -> np.ndarray:
    with gc.no_grad():
        return model(gc.tensor(TEXT[None, :count].astype(np.int64)))[:, -1].numpy()


def check(model: llm.Decoder, calls: list[Any], counts: list[int]) -> None:
    for result, count in zip(calls, counts, strict=True):
        logits, likeliest = result if isinstance(result, tuple) else result.values()
        np.testing.assert_allclose(logits, expected(model, count), atol=1e-4, rtol=1e-4)
        assert likeliest == np.argmax(logits, -1) and likeliest.dtype == np.int32


def test_a_library_with_its_weights_beside(model: llm.Decoder, tmp_path: Path):
    library = gc.build_library(model.entries(), path=tmp_path / "model.so", emit=("so", "h", "py"), weights="beside")
    assert library.files["weights"].stat().st_size < library.weight_bytes + 4096
    namespace: dict[str, Any] = {"__file__": str(library.files["py"])}
    exec(library.files["py"].read_text(), namespace)
    found = namespace["Model"]()
    first, rest = TEXT[None, :8], TEXT[None, 8:]
    states = [found.save_state()]
    for _ in range(2):
        logits = found.prefill(first, position=0)
        states.append(found.save_state())
        check(model, [logits, found.step(rest, position=8)], [8, 9])
        found.call("reset_state", found.context)
        states.append(found.save_state())
    start, used = states[0], states[1]
    assert np.array_equal(states[2], start) and np.array_equal(states[4], start) and not np.array_equal(used, start)
    assert np.array_equal(states[3], used)


def test_caches_are_not_stored(model: llm.Decoder, tmp_path: Path):
    library = gc.build_library({"step": model.entries()["step"]}, path=tmp_path / "model.o")
    arrays = {
        name: array.detach().numpy().nbytes for name, array in (*model.named_parameters(), *model.named_buffers())
    }
    caches = sum(size for name, size in arrays.items() if name.endswith((".keys", ".values")))
    assert library.context_bytes == 64 + caches
    table = arrays["embed_tokens.weight"]
    assert library.weight_bytes < sum(arrays.values()) + table - caches // 2, "rows of the table, and its product"


def test_a_model_file(model: llm.Decoder, tmp_path: Path):
    gc.export(model.entries(), path=tmp_path / "model.gcm")
    found = gc.load(tmp_path / "model.gcm")
    first, rest = TEXT[None, :8], TEXT[None, 8:]
    check(model, [found.entry("prefill")(first, 0), found.entry("step")(rest, 8)], [8, 9])


def test_a_block_of_places_is_refused():
    with pytest.raises(ArgumentError, match="more than 64 places"):
        llm.Decoder(llm.decoder_config(CONFIG), places=64).entries()
