"""Names and rows of weights in files."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.errors import ArtifactError
from graphc.llm.blocks import F32
from graphc.llm.gguf_file import GgufTensor
from graphc.llm.names import from_gguf, from_transformers, split_fused


def floats(rows: int, columns: int = 2) -> GgufTensor:
    return GgufTensor(F32, np.arange(rows * columns, dtype=np.float32).reshape(rows, columns))


def test_norms_before_and_after():
    plain = from_gguf({"blk.3.ffn_norm.weight": floats(1)})
    assert list(plain) == ["layers.3.post_attention_layernorm.weight"]
    both = from_gguf({"blk.3.ffn_norm.weight": floats(1), "blk.3.post_ffw_norm.weight": floats(1)})
    assert list(both) == ["layers.3.pre_feedforward_layernorm.weight", "layers.3.post_feedforward_layernorm.weight"]


def test_unknown_names_stay():
    assert list(from_gguf({"blk.0.ssm_a.weight": floats(1)})) == ["blk.0.ssm_a.weight"]


def test_fused_rows_are_split():
    weights = split_fused({"layers.0.self_attn.qkv_proj.weight": floats(8)}, heads=2, shared=1)
    rows = {name.split(".")[-2]: tensor.blocks[:, 0].tolist() for name, tensor in weights.items()}
    assert rows == {"q_proj": [0, 2, 4, 6], "k_proj": [8, 10], "v_proj": [12, 14]}
    with pytest.raises(ArtifactError, match="9 rows"):
        split_fused({"layers.0.self_attn.qkv_proj.weight": floats(9)}, heads=2, shared=1)


def test_other_element_types_are_refused():
    with pytest.raises(ArtifactError, match="int64"):
        from_transformers("folder", {"norm.weight": np.zeros(3, np.int64)}, "llama")
