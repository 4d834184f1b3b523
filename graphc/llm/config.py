"""Sizes and variants of a decoder, from ``config.json`` or from the metadata of a GGUF file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, floor, log, pi, sqrt
from typing import Any

import numpy as np

from graphc.base.errors import ArtifactError, UnsupportedError
from graphc.base.records import dataclass

__all__ = ["DecoderConfig", "decoder_config"]

FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "gemma3_text", "phi3", "smollm3")
FAMILIES += ("granite",)
"""Architectures by their names in files."""
_GEMMA2_LARGE, _GEMMA3_LARGE = 46, 62
"""Layers of the 27B models, whose scores are scaled by width / heads; GGUF files do not store that."""
_MAX_LAYERS, _MAX_SIZE = 1 << 12, 1 << 24


class Fields:
    """Access to fields of a configuration, with errors that name them."""

    def __init__(self, source: str, values: Mapping[str, Any], prefix: str = ""):
        self.source, self.values, self.prefix = source, values, prefix

    def get(self, key: str, default: Any = None) -> Any:
        value = self.values.get(self.prefix + key)
        return default if value is None else value

    def number(self, key: str, default: float | None = None) -> Any:
        value = self.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise ArtifactError(f"{self.source}: {self.prefix + key} is {value!r}, not a number")
        return value

    def positive(self, key: str, default: float | None = None) -> float:
        value = float(self.number(key, default))
        if value <= 0:
            raise ArtifactError(f"{self.source}: {self.prefix + key} is {value}, not positive")
        return value

    def cap(self, key: str, default: float | None = None) -> float | None:
        """Return a positive number, or None where there is none."""
        return None if self.get(key, default) is None else self.positive(key, default)

    def numbers(self, key: str, count: int) -> np.ndarray:
        """Return f32[count], positive numbers of a list or array."""
        value = self.get(key)
        numbers = [*value] if isinstance(value, list) or (isinstance(value, np.ndarray) and value.ndim) else []
        valid = all(isinstance(x, int | float | np.floating) and 0 < x < _MAX_SIZE for x in numbers)
        if len(numbers) != count or not valid:
            raise ArtifactError(f"{self.source}: {self.prefix + key} is not a list of {count} positive numbers")
        return np.array(numbers, np.float32)

    def object(self, key: str) -> Fields:
        """Return the fields of an object, none where it is missing."""
        value = self.get(key, {})
        if not isinstance(value, dict):
            raise ArtifactError(f"{self.source}: {key} is {value!r}, not an object")
        return Fields(f"{self.source}: {key}", value)

    def integer(self, key: str, default: int | None = None) -> int:
        value = self.number(key, default)
        if value != int(value) or not 0 < value <= _MAX_SIZE:
            raise ArtifactError(f"{self.source}: {self.prefix + key} is {value!r}, not a positive integer")
        return int(value)

    def family(self, name: Any) -> str:
        if not isinstance(name, str) or name not in FAMILIES:
            raise UnsupportedError(
                f"{self.source}: architecture {name!r}", remedy=f"pass a model of {', '.join(FAMILIES)}"
            )
        return "gemma3" if name == "gemma3_text" else name


@dataclass(frozen=True)
class Rotary:
    """Rotary position embedding (Su et al. 2021): angle of pair ``i`` at position ``p`` is ``p * frequencies[i]``."""

    frequencies: tuple[float, ...]
    factor: float = 1.0
    """Factor of cosines and sines."""
    long: tuple[float, ...] = ()
    """Frequencies for caches of more than ``original`` places; none where all caches have the same."""
    original: int = 0

    @staticmethod
    def of(size: int, base: float, scaling: Fields, context: int) -> Rotary:
        """Return the frequencies of ``size`` rotated elements: ``base^(-2i/size)``, scaled for long contexts."""
        kind = scaling.get("rope_type", scaling.get("type", "default"))
        if not isinstance(kind, str) or kind not in _SCALINGS:
            raise UnsupportedError(
                f"{scaling.source}: rotary positions of type {kind!r}", remedy=f"use one of {', '.join(_SCALINGS)}"
            )
        if size < 2 or size % 2 or base <= 0:
            raise ArtifactError(f"{scaling.source}: {size} rotated elements with base {base}")
        plain = np.float32(1) / np.float32(base) ** (np.arange(0, size, 2, dtype=np.float32) / np.float32(size))
        return _SCALINGS[kind](plain.astype(np.float32), scaling, context, base)

    def divided(self, divisors: np.ndarray) -> tuple[float, ...]:
        """Return the frequencies, each divided by its own number."""
        return tuple((np.array(self.frequencies, np.float32) / divisors).tolist())

    def frequencies_of(self, places: int) -> np.ndarray:
        """Return the frequencies f32[pairs] for caches of ``places`` tokens."""
        return np.array(self.long if self.long and places > self.original else self.frequencies, np.float32)


def _plain(plain: np.ndarray, scaling: Fields, context: int, base: float) -> Rotary:
    return Rotary(tuple(plain.tolist()))


def _linear(plain: np.ndarray, scaling: Fields, context: int, base: float) -> Rotary:
    return Rotary(tuple((plain / np.float32(scaling.positive("factor"))).tolist()))


def _llama3(plain: np.ndarray, scaling: Fields, context: int, base: float) -> Rotary:
    """Divide low frequencies by a factor, keep high ones, and interpolate between them (Llama 3.1)."""
    factor, low, high = (scaling.positive(k) for k in ("factor", "low_freq_factor", "high_freq_factor"))
    turns = scaling.positive(_ORIGINAL, context) * plain / (2 * pi)
    smooth = np.clip((turns - low) / max(high - low, 1e-6), 0.0, 1.0).astype(np.float32)
    return Rotary(tuple((plain / np.float32(factor) * (1 - smooth) + plain * smooth).tolist()))


def _yarn(plain: np.ndarray, scaling: Fields, context: int, base: float) -> Rotary:
    """Divide by a factor the frequencies that turn less than ``beta_slow`` times in the original context, keep those
    that turn more than ``beta_fast`` times, interpolate by index between them, and scale the scores (Peng et al. 2023,
    YaRN)."""
    original = scaling.positive(_ORIGINAL, context)
    factor = scaling.positive("factor", context / original)
    if base <= 1:
        raise ArtifactError(f"{scaling.source}: yarn needs a base above 1, not {base}")
    fast, slow = (scaling.positive(key, default) for key, default in (("beta_fast", 32), ("beta_slow", 1)))
    first, last = (len(plain) * log(original / (2 * pi * turns)) / log(base) for turns in (fast, slow))
    if scaling.get("truncate", True):
        first, last = floor(first), ceil(last)
    first, last = max(first, 0), min(last, 2 * len(plain) - 1)
    ramp = (np.arange(len(plain), dtype=np.float32) - first) / (last - first if last != first else 1e-3)
    inside = np.clip(ramp, 0, 1).astype(np.float32)
    one, all_sizes = (scaling.get(key) and scaling.positive(key) for key in ("mscale", "mscale_all_dim"))
    scale = _yarn_scale(factor, one) / _yarn_scale(factor, all_sizes) if one and all_sizes else _yarn_scale(factor, 1)
    frequencies = plain / np.float32(factor) * inside + plain * (1 - inside)
    return Rotary(tuple(frequencies.tolist()), scaling.positive("attention_factor", scale))


def _yarn_scale(factor: float, scale: float) -> float:
    return 1.0 if factor <= 1 else 0.1 * scale * log(factor) + 1


def _longrope(plain: np.ndarray, scaling: Fields, context: int, base: float) -> Rotary:
    """Divide each frequency by its own factor, by another one for caches longer than the original context (Ding et al.
    2024, LongRoPE)."""
    original = scaling.integer(_ORIGINAL, context)
    factor = scaling.positive("factor", context / original)
    scale = sqrt(1 + log(factor) / log(original)) if factor > 1 and original > 1 else 1.0
    short, long = (scaling.numbers(f"{kind}_factor", len(plain)) for kind in ("short", "long"))
    rotary = _plain(plain, scaling, context, base)
    scale = scaling.positive("attention_factor", scale)
    return Rotary(rotary.divided(short), scale, rotary.divided(long), original)


_ORIGINAL = "original_max_position_embeddings"
_SCALINGS: dict[str, Callable[[np.ndarray, Fields, int, float], Rotary]] = {
    "default": _plain,
    "none": _plain,
    "linear": _linear,
    "llama3": _llama3,
    "yarn": _yarn,
    "longrope": _longrope,
    "su": _longrope,
}


@dataclass(frozen=True)
class DecoderConfig:
    """Sizes and variants of a decoder."""

    family: str
    vocabulary: int
    width: int
    layers: int
    heads: int
    shared_heads: int
    """Heads of keys and values; each serves ``heads / shared_heads`` query heads."""
    head_size: int
    hidden: int
    """Width inside of the perceptrons."""
    context: int
    """Positions that the model was trained for."""
    epsilon: float
    activation: str
    rotary: tuple[Rotary | None, ...]
    """For each layer; None for layers without positions."""
    windows: tuple[int | None, ...]
    """For each layer the number of positions that a token sees, itself included; None for all."""
    scale: float
    """Factor of the scores."""
    score_cap: float | None = None
    logit_cap: float | None = None
    """Caps by ``cap * tanh(x / cap)``, of scores and of logits."""
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    logit_scale: float = 1.0
    biases: tuple[str, ...] = ()
    """Names of the projections with a bias."""
    head_norms: bool = False
    """Whether queries and keys of a head are normalized."""
    norms_after: bool = False
    """Whether results of attention and perceptron are normalized, too."""
    tied: bool = True
    """Whether the logits are products with the table of tokens."""

    def __post_init__(self) -> None:
        sizes = (self.vocabulary, self.width, self.heads, self.shared_heads, self.head_size, self.hidden, self.context)
        if not (all(0 < n <= _MAX_SIZE for n in sizes) and 0 < self.layers <= _MAX_LAYERS):
            raise ArtifactError(f"the model's sizes are not plausible: {sizes}, {self.layers} layers")
        if self.heads % self.shared_heads or self.head_size % 2:
            raise ArtifactError(
                f"{self.heads} heads of {self.head_size} elements cannot share {self.shared_heads} keys and values"
            )
        if self.activation not in ACTIVATIONS:
            raise UnsupportedError(f"activation {self.activation!r}", remedy=f"use one of {', '.join(ACTIVATIONS)}")


ACTIVATIONS = ("silu", "gelu_pytorch_tanh", "gelu")


# ---- config.json


def decoder_config(
    values: Mapping[str, Any], names: frozenset[str] = frozenset(), source: str = "config.json"
) -> DecoderConfig:
    """Return the configuration in the ``values`` of a ``config.json``.

    ``names`` of weights tell biases, norms, and whether logits are products with the table of tokens (by default yes).
    Raises ArtifactError for missing and wrong fields, UnsupportedError for unknown architectures.

    Example:
        >>> import graphc as gc
        >>> sizes = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "max_position_embeddings": 128}
        >>> values = {**sizes, "model_type": "llama", "num_hidden_layers": 2, "num_attention_heads": 4}
        >>> gc.llm.Decoder(gc.llm.decoder_config(values))(gc.tensor([[1, 2, 3]])).shape
        (1, 3, 64)
    """
    family = Fields(source, values).family(values.get("model_type"))
    if isinstance(values.get("text_config"), dict):
        values = values["text_config"]
    fields = Fields(source, values)
    heads, width, layers = (fields.integer(k) for k in ("num_attention_heads", "hidden_size", "num_hidden_layers"))
    if layers > _MAX_LAYERS:
        raise ArtifactError(f"{source}: the model has {layers} layers, at most {_MAX_LAYERS} are read")
    gemma, granite = family.startswith("gemma"), family == "granite"
    head_size = fields.integer("head_dim", 256 if gemma else max(width // heads, 1))
    sliding, context = _sliding(fields, family, layers), fields.integer("max_position_embeddings")
    window = fields.integer("sliding_window", 4096) if any(sliding) else None
    scalar = fields.positive("query_pre_attn_scalar", head_size) if family in ("gemma2", "gemma3") else head_size
    capped = family == "gemma2"
    return DecoderConfig(
        family=family,
        vocabulary=fields.integer("vocab_size"),
        width=width,
        layers=layers,
        heads=heads,
        shared_heads=fields.integer("num_key_value_heads", heads),
        head_size=head_size,
        hidden=fields.integer("intermediate_size"),
        context=context,
        epsilon=fields.number("rms_norm_eps", 1e-6),
        activation="gelu_pytorch_tanh" if gemma else fields.get("hidden_act", "silu"),
        rotary=_rotary(fields, family, sliding, head_size, context),
        windows=tuple(window if s else None for s in sliding),
        scale=fields.number("attention_multiplier", 1.0) if granite else 1 / sqrt(scalar),
        score_cap=fields.cap("attn_logit_softcapping", 50.0 if capped else None),
        logit_cap=fields.cap("final_logit_softcapping", 30.0 if capped else None),
        embedding_scale=sqrt(width) if gemma else fields.number("embedding_multiplier", 1.0),
        residual_scale=fields.number("residual_multiplier", 1.0),
        logit_scale=1 / fields.positive("logits_scaling", 1.0),
        **variants(names),
    )


def variants(names: frozenset[str]) -> dict[str, Any]:
    """Return the variants that the names of the first layer's weights tell."""
    first = "layers.0."
    biases = {name.split(".")[-2] for name in names if name.startswith(first) and name.endswith(".bias")}
    return {
        "biases": tuple(sorted(biases)),
        "head_norms": first + "self_attn.q_norm.weight" in names,
        "norms_after": first + "post_feedforward_layernorm.weight" in names,
        "tied": "lm_head.weight" not in names,
    }


def _sliding(fields: Fields, family: str, layers: int) -> list[bool]:
    """Return whether each layer sees a window of positions."""
    kinds = fields.get("layer_types")
    if isinstance(kinds, list) and len(kinds) >= layers:
        return [kind == "sliding_attention" for kind in kinds[:layers]]
    if family in ("gemma2", "gemma3"):
        period = 2 if family == "gemma2" else fields.integer("sliding_window_pattern", 6)
        return [(i + 1) % period != 0 for i in range(layers)]
    if fields.get("sliding_window") is None or family not in ("mistral", "phi3"):
        first = fields.get("max_window_layers", layers) if fields.get("use_sliding_window") else layers
        return [i >= first for i in range(layers)]
    return [True] * layers


def _rotary(
    fields: Fields, family: str, sliding: list[bool], head_size: int, context: int
) -> tuple[Rotary | None, ...]:
    scaling = fields.object("rope_parameters" if fields.get("rope_parameters") else "rope_scaling")
    nested = scaling.get("full_attention") is not None
    full, sliding_part = (scaling.object(f"{kind}_attention") if nested else scaling for kind in ("full", "sliding"))
    if not nested and fields.get(_ORIGINAL) is not None:  # Phi-3 has it outside.
        full = Fields(scaling.source, {**scaling.values, _ORIGINAL: fields.get(_ORIGINAL)})
    base = full.positive("rope_theta", fields.positive("rope_theta", 1e6 if family == "gemma3" else 1e4))
    share = full.positive("partial_rotary_factor", fields.positive("partial_rotary_factor", 1.0))
    size = int(head_size * min(share, 1.0))
    wide = narrow = Rotary.of(size, base, full, context)
    if family == "gemma3":
        local = fields.positive("rope_local_base_freq", 1e4)
        local = sliding_part.positive("rope_theta", local) if nested else local
        narrow = Rotary.of(size, local, Fields(fields.source, {}), context)
    layers: list[Rotary | None] = [narrow if s else wide for s in sliding]
    if family == "smollm3":
        period = fields.integer("no_rope_layer_interval", 4)
        present = fields.get("no_rope_layers") or [(i + 1) % period for i in range(len(layers))]
        if not isinstance(present, list) or len(present) != len(layers):
            raise ArtifactError(f"{fields.source}: no_rope_layers is not a list of {len(layers)} numbers")
        layers = [x if use else None for x, use in zip(layers, present, strict=True)]
    return tuple(layers)


# ---- metadata of GGUF


def from_metadata(
    source: str,
    metadata: Mapping[str, Any],
    vocabulary: int,
    names: frozenset[str],
    divisors: Mapping[str, np.ndarray] | None = None,
) -> DecoderConfig:
    """Return the configuration in the metadata of a GGUF file for weights of ``names``. ``divisors`` of rotary
    frequencies, f32[pairs], are the tensors ``DIVISORS`` of the file. Raises as ``decoder_config``."""
    family = Fields(source, metadata).family(metadata.get("general.architecture"))
    fields = Fields(source, metadata, family + ".")
    heads, width, layers = (fields.integer(k) for k in ("attention.head_count", "embedding_length", "block_count"))
    if layers > _MAX_LAYERS:
        raise ArtifactError(f"{source}: the model has {layers} layers, at most {_MAX_LAYERS} are read")
    head_size = fields.integer("attention.key_length", max(width // heads, 1))
    gemma, granite = family.startswith("gemma"), family == "granite"
    large = {"gemma2": _GEMMA2_LARGE, "gemma3": _GEMMA3_LARGE}.get(family) == layers
    period = {"gemma2": 2, "gemma3": fields.integer("attention.sliding_window_pattern", 6)}.get(family, 0)
    window = fields.integer("attention.sliding_window", 4096) if period or family == "phi3" else None
    if family == "phi3" and fields.get("attention.sliding_window") is None:
        window = None
    sliding = [window is not None and not (period and (i + 1) % period == 0) for i in range(layers)]
    return DecoderConfig(
        family=family,
        vocabulary=vocabulary,
        width=width,
        layers=layers,
        heads=heads,
        shared_heads=fields.integer("attention.head_count_kv", heads),
        head_size=head_size,
        hidden=fields.integer("feed_forward_length"),
        context=fields.integer("context_length"),
        epsilon=fields.number("attention.layer_norm_rms_epsilon"),
        activation="gelu_pytorch_tanh" if gemma else "silu",
        rotary=_metadata_rotary(fields, family, sliding, head_size, divisors or {}),
        windows=tuple(window if s else None for s in sliding),
        scale=fields.number("attention.scale", 1.0) if granite else 1 / sqrt(width / heads if large else head_size),
        score_cap=fields.cap("attn_logit_softcapping"),
        logit_cap=fields.cap("final_logit_softcapping"),
        embedding_scale=sqrt(width) if gemma else fields.number("embedding_scale", 1.0),
        residual_scale=fields.number("residual_scale", 1.0),
        logit_scale=1 / fields.positive("logit_scale", 1.0),
        **variants(names),
    )


DIVISORS = ("rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight")
"""Tensors of GGUF files that divide rotary frequencies: of all caches, and of short and long ones."""
_SCALING_KEYS = {
    "type": "rope_type",
    "factor": "factor",
    "original_context_length": _ORIGINAL,
    "yarn_beta_fast": "beta_fast",
    "yarn_beta_slow": "beta_slow",
}
"""Keys of the scaling in GGUF files to those of ``config.json``."""
_AMBIGUOUS = ("yarn_attn_factor", "yarn_log_multiplier")
"""Keys that converters write with several meanings: as the whole factor of the scores or as a part of it."""


def _metadata_rotary(
    fields: Fields, family: str, sliding: list[bool], head_size: int, divisors: Mapping[str, np.ndarray]
) -> tuple[Rotary | None, ...]:
    size, context = fields.integer("rope.dimension_count", head_size), fields.integer("context_length")
    base = fields.positive("rope.freq_base", 1e4)
    wide = Rotary.of(size, base, _metadata_scaling(fields, divisors), context)
    if DIVISORS[0] in divisors:
        numbers = Fields(fields.source, divisors).numbers(DIVISORS[0], size // 2)
        wide = Rotary(wide.divided(numbers), wide.factor)
    narrow = Rotary.of(size, 1e4, Fields(fields.source, {}), context) if family == "gemma3" else wide
    layers: list[Rotary | None] = [narrow if s else wide for s in sliding]
    return tuple(None if family == "smollm3" and (i + 1) % 4 == 0 else x for i, x in enumerate(layers))


def _metadata_scaling(fields: Fields, divisors: Mapping[str, np.ndarray]) -> Fields:
    """Return the scaling of rotary positions under the keys of ``config.json``."""
    values = {new: fields.get(f"rope.scaling.{key}") for key, new in _SCALING_KEYS.items()}
    values = {key: value for key, value in values.items() if value is not None}
    factor = fields.cap("rope.scaling.attn_factor")
    if any(name in divisors for name in DIVISORS[1:]):  # Converters of Phi-3 write no type.
        values["rope_type"] = "longrope"
        values |= {f"{k}_factor": divisors.get(n) for k, n in zip(("short", "long"), DIVISORS[1:], strict=True)}
        values |= {} if factor is None else {"attention_factor": factor}
    unclear = [key for key in _AMBIGUOUS if fields.get(f"rope.scaling.{key}") is not None]
    unclear += ["attn_factor"] if factor not in (None, 1.0) and "attention_factor" not in values else []
    if unclear:
        raise UnsupportedError(
            f"{fields.source}: {fields.prefix}rope.scaling.{unclear[0]} has several meanings",
            remedy="load the folder of safetensors files instead",
        )
    return Fields(fields.source, values)
