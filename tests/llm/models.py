"""Small random models of ``transformers``, and GGUF files of them as a converter writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
import transformers

SIZES = {
    "vocab_size": 96,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 500.0,
    "factor": 2.0,
    "original_max_position_embeddings": 32,
    "beta_fast": 2.0,
    "beta_slow": 0.5,
}
LONGROPE = {
    "rope_type": "longrope",
    "short_factor": [1.0, 1.1, 1.2, 1.3, 1.5, 2.0, 2.5, 3.0],
    "long_factor": [1.5, 1.7, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0],
}
GRANITE = {"embedding_multiplier": 6.0, "attention_multiplier": 0.2, "residual_multiplier": 0.4, "logits_scaling": 3.0}
GEMMA = {"head_dim": 32, "query_pre_attn_scalar": 32, "sliding_window": 5}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {}),
    "llama3": ("Llama", {"rope_parameters": LLAMA3}),
    "llama with biases": ("Llama", {"attention_bias": True, "mlp_bias": True}),
    "smollm2": ("Llama", {"tie_word_embeddings": True, "rope_parameters": {"rope_type": "default", "rope_theta": 1e5}}),
    "qwen2": ("Qwen2", {}),
    "qwen3": ("Qwen3", {"head_dim": 32}),
    "mistral": ("Mistral", {"sliding_window": 5}),
    "gemma": ("Gemma", {"head_dim": 32}),
    "gemma2": ("Gemma2", {**GEMMA, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0}),
    "gemma3": ("Gemma3", {**GEMMA, "num_hidden_layers": 7}),
    "phi3": ("Phi3", {"sliding_window": 7}),
    "phi3 longrope": (
        "Phi3",
        {"max_position_embeddings": 256, "original_max_position_embeddings": 64, "rope_parameters": LONGROPE},
    ),
    "qwen2 yarn": ("Qwen2", {"rope_parameters": YARN}),
    "llama yarn": ("Llama", {"rope_parameters": {**YARN, "truncate": False, "mscale": 1.5, "mscale_all_dim": 0.7}}),
    "smollm3": ("SmolLM3", {"num_hidden_layers": 5}),
    "granite": ("Granite", GRANITE),
}
"""Classes and configurations by name."""
ARCHITECTURES = {"Mistral": "llama"}
"""Names in GGUF files that are not those of the class."""
NO_WINDOW = ("mistral",)
"""Models whose GGUF files do not store the window."""
FOLDERS_ONLY = ("llama yarn",)
"""Models with settings that GGUF files do not store."""


def make(name: str, **changes: Any) -> Any:
    """Return a random model; norms, biases and all other weights differ from their initial values."""
    kind, config = MODELS[name]
    torch.manual_seed(0)
    text = "TextConfig" if kind == "Gemma3" else "Config"
    config = getattr(transformers, kind + text)(**{**SIZES, **config, **changes}, attn_implementation="eager")
    model = getattr(transformers, kind + "ForCausalLM")(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


def logits_of(model: Any, tokens: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return model(torch.from_numpy(tokens)).logits.numpy()


def write_gguf(model: Any, path: Path, kind: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.F32) -> None:
    """Write a model; matrices in blocks of ``kind``."""
    name = type(model).__name__.removesuffix("ForCausalLM")
    name = ARCHITECTURES.get(name, name.lower())
    names = gguf.get_tensor_name_map(getattr(gguf.MODEL_ARCH, name.upper()), model.config.num_hidden_layers)
    writer = gguf.GGUFWriter(path, name)
    _write_metadata(writer, model.config, name)
    _write_scaling(writer, model.config.rope_parameters)
    if getattr(model.config, "rope_parameters", {}).get("rope_type") == "llama3":
        plain = 1.0 / LLAMA3["rope_theta"] ** (np.arange(0, 16, 2) / 16)
        inverse = model.model.rotary_emb.inv_freq.numpy()
        writer.add_tensor("rope_freqs.weight", (plain / inverse).astype(np.float32))
    for key, tensor in model.state_dict().items():
        if key == "lm_head.weight" and model.config.tie_word_embeddings:
            continue
        stored, array = names.get_name(key, (".weight", ".bias")), _converted(key, tensor.numpy(), model.config, name)
        assert stored is not None, key
        wide = kind if array.ndim == 2 else gguf.GGMLQuantizationType.F32
        writer.add_tensor(stored, gguf.quants.quantize(array, wide), raw_dtype=wide)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _write_metadata(writer: gguf.GGUFWriter, config: Any, name: str) -> None:
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    rotary = config.rope_parameters
    writer.add_rope_freq_base(rotary.get("full_attention", rotary)["rope_theta"])
    size = getattr(config, "head_dim", None)
    if size is not None:
        writer.add_key_length(size)
        writer.add_value_length(size)
    if name in ("gemma2", "gemma3", "phi3") and config.sliding_window is not None:
        writer.add_sliding_window(config.sliding_window)
    if name == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    if name == "granite":
        writer.add_attention_scale(config.attention_multiplier)
        writer.add_embedding_scale(config.embedding_multiplier)
        writer.add_residual_scale(config.residual_multiplier)
        writer.add_logit_scale(config.logits_scaling)


def _write_scaling(writer: gguf.GGUFWriter, rotary: dict[str, Any]) -> None:
    kind = rotary.get("rope_type")
    if kind == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rotary["factor"])
        writer.add_rope_scaling_orig_ctx_len(rotary["original_max_position_embeddings"])
        writer.add_rope_scaling_yarn_beta_fast(rotary["beta_fast"])
        writer.add_rope_scaling_yarn_beta_slow(rotary["beta_slow"])
    elif kind == "longrope":
        original = rotary["original_max_position_embeddings"]
        writer.add_rope_scaling_orig_ctx_len(original)
        writer.add_rope_scaling_attn_factors((1 + np.log(256 / original) / np.log(original)) ** 0.5)
        for length in ("short", "long"):
            writer.add_tensor(f"rope_factors_{length}.weight", np.array(rotary[f"{length}_factor"], np.float32))


def _converted(key: str, array: np.ndarray, config: Any, name: str) -> np.ndarray:
    """Return a weight as GGUF files have it: rotated pairs of Llama next to each other, norms of Gemma plus 1."""
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    part = key.split(".")[-2]
    if name in ("llama", "smollm3", "granite") and part in heads:
        halves = array.reshape(heads[part], 2, -1, *array.shape[1:])
        return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(array.shape)
    return array + np.float32(1) if name.startswith("gemma") and "norm" in key else array
