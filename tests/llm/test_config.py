"""Configurations of decoders: defaults of older files, and errors for wrong fields."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphc.errors import ArtifactError, UnsupportedError
from graphc.llm.config import decoder_config, from_metadata
from tools.damage.language_models import CONFIG

LONGROPE = {"rope_type": "longrope", "short_factor": [1.0] * 4, "long_factor": [2.0] * 4}
NAMES = frozenset({"lm_head.weight"})
METADATA = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.context_length": 64,
    "llama.embedding_length": 32,
    "llama.feed_forward_length": 48,
    "llama.attention.head_count": 4,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
}


def test_fields_of_older_files():
    gemma = {**CONFIG, "model_type": "gemma3_text", "num_hidden_layers": 6, "head_dim": 8, "sliding_window": 7}
    del gemma["layer_types"]
    gemma["rope_scaling"] = {"rope_type": "linear", "factor": 8.0}
    config = decoder_config(gemma, NAMES)
    assert config.windows == (7, 7, 7, 7, 7, None)
    first, last = config.rotary[0], config.rotary[5]
    assert first is not None and last is not None
    np.testing.assert_allclose(first.frequencies, 1e4 ** (-np.arange(0, 8, 2) / 8), rtol=1e-6)
    np.testing.assert_allclose(last.frequencies, 1e6 ** (-np.arange(0, 8, 2) / 8) / 8, rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"model_type": "mamba"}, UnsupportedError, "architecture 'mamba'"),
        ({"hidden_size": "wide"}, ArtifactError, "hidden_size is 'wide'"),
        ({"num_key_value_heads": 3}, ArtifactError, "cannot share 3"),
        ({"hidden_act": "relu"}, UnsupportedError, "activation 'relu'"),
        ({"num_hidden_layers": 1 << 20}, ArtifactError, "layers"),
        ({"rope_scaling": {"rope_type": "dynamic"}}, UnsupportedError, "type 'dynamic'"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": -2}}, ArtifactError, "not positive"),
        ({"rope_scaling": {"rope_type": "yarn"}, "rope_theta": 0.5}, ArtifactError, "base above 1"),
        ({"rope_scaling": {"rope_type": "longrope"}}, ArtifactError, "short_factor is not a list"),
        ({"rope_scaling": {**LONGROPE, "long_factor": [1.0]}}, ArtifactError, "long_factor is not a list"),
        ({"rope_scaling": {**LONGROPE, "short_factor": [1, 1, 1, "x"]}}, ArtifactError, "short_factor is not a list"),
        ({"rope_scaling": {"rope_type": "linear"}}, ArtifactError, "factor is None"),
        ({"rope_scaling": [1]}, ArtifactError, "not an object"),
        ({"rope_theta": 0}, ArtifactError, "not positive"),
    ],
)
def test_wrong_fields(change: dict[str, Any], error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        decoder_config({**CONFIG, **change}, NAMES)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"general.architecture": np.arange(3)}, UnsupportedError, "architecture"),
        ({"llama.block_count": True}, ArtifactError, "block_count is True"),
        ({"llama.rope.scaling.type": "other"}, UnsupportedError, "type 'other'"),
        ({"llama.rope.scaling.type": "longrope"}, ArtifactError, "short_factor is not a list"),
        ({"llama.rope.scaling.attn_factor": 2.0}, UnsupportedError, "attn_factor"),
        ({"llama.rope.scaling.yarn_attn_factor": 1.0}, UnsupportedError, "yarn_attn_factor has several meanings"),
        ({"llama.rope.scaling.yarn_log_multiplier": 0.1}, UnsupportedError, "yarn_log_multiplier has several"),
        ({"llama.rope.dimension_count": 7}, ArtifactError, "7 rotated elements"),
    ],
)
def test_wrong_metadata(change: dict[str, Any], error: type[Exception], message: str):
    assert from_metadata("file", METADATA, 64, NAMES).head_size == 8
    with pytest.raises(error, match=message):
        from_metadata("file", {**METADATA, **change}, 64, NAMES)
