"""``load``: a decoder from a GGUF file or from a folder with ``config.json`` and safetensors files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from graphc.base.errors import ArgumentError, ArtifactError
from graphc.checkpoints.weight_file import read_weights
from graphc.llm.block_layers import BlockLinear, BlockTable, BlockWeight
from graphc.llm.blocks import dequantize
from graphc.llm.config import DIVISORS, DecoderConfig, decoder_config, from_metadata
from graphc.llm.decoder import Decoder, LayerMaker, TokenTable
from graphc.llm.gguf_file import GgufFile, GgufTensor, read_gguf
from graphc.llm.names import INTERLEAVED, Weights, from_gguf, from_transformers, half_apart, split_fused
from graphc.nn.module import Module
from graphc.nn.modules.linear import Linear
from graphc.nn.modules.normalization import RMSNorm
from graphc.nn.parameter import Parameter
from graphc.tensors.creation import tensor as tensor_of
from graphc.tensors.tensor import Tensor

__all__ = ["load"]

_CONFIG = "config.json"
_MAX_CONFIG_BYTES = 1 << 24
_PLACES = 2048
"""Capacity of the caches, where the model allows more and the caller asks for none."""


class _Stored(LayerMaker):
    """Makes layers with the weights of a file. Quantized matrices stay blocks; floats become f32."""

    def __init__(self, source: str, weights: Weights):
        self.source, self.weights = source, dict(weights)

    def _take(self, name: str, shape: tuple[int, ...]) -> GgufTensor:
        tensor = self.weights.pop(name, None)
        if tensor is None:
            raise ArtifactError(f"{self.source}: the weight {name!r} is missing")
        if tensor.shape != shape:
            raise ArtifactError(f"{self.source}: {name!r} has shape {list(tensor.shape)}, not {list(shape)}")
        return tensor

    def _floats(self, name: str, *shape: int) -> Parameter:
        return _parameter(self._take(name, shape))

    def linear(self, path: str, inputs: int, outputs: int, bias: bool) -> Module:
        weight = self._take(f"{path}.weight", (outputs, inputs))
        offset = self._floats(f"{path}.bias", outputs) if bias else None
        if weight.format.unpack is not None:
            return BlockLinear(BlockWeight.of(weight), offset)
        layer = Linear(1, 1, bias=False)
        layer.in_features, layer.out_features, layer.weight = inputs, outputs, _parameter(weight)
        layer.register_parameter("bias", offset)
        return layer

    def table(self, path: str, count: int, width: int) -> Module:
        weight = self._take(f"{path}.weight", (count, width))
        if weight.format.unpack is not None:
            return BlockTable(BlockWeight.of(weight))
        return TokenTable(count, width, _weight=_tensor(weight))

    def norm(self, path: str, size: int, config: DecoderConfig) -> Module:
        norm = RMSNorm(size, config.epsilon)
        norm.weight = self._floats(f"{path}.weight", size)
        return norm


def _tensor(tensor: GgufTensor) -> Tensor:
    return tensor_of(dequantize(*tensor))


def _parameter(tensor: GgufTensor) -> Parameter:
    return Parameter(_tensor(tensor))


def load(path: str | os.PathLike[str], places: int | None = None, rows: int = 1) -> Decoder:
    """Return the decoder in a GGUF file, or in a folder with ``config.json`` and safetensors files.

    Quantized matrices stay quantized: their codes and scales are repacked for products, without rounding. Floats become
    f32. The decoder is in evaluation mode.

    Args:
        path: a ``.gguf`` file (version 3), or a folder as ``save_pretrained`` of ``transformers`` writes it.
        places: capacity of the caches in tokens (default: that of the model, at most 2048).
        rows: number of texts that the caches hold.

    Raises:
        ArtifactError: the file is damaged, or weights are missing or have other shapes.
        UnsupportedError: another architecture, block format, or kind of rotary positions.
        ArgumentError: ``places`` or ``rows`` is no positive number, or the package ``safetensors`` is missing.
        OSError: the file cannot be read.

    Example:
        >>> import graphc as gc
        >>> model = gc.llm.load("SmolLM2-135M-Instruct.Q4_1.gguf")  # doctest: +SKIP
        >>> model(gc.tensor([[504, 3575, 282]])).shape  # doctest: +SKIP
        (1, 3, 49152)
    """
    for name, value in (("places", places), ("rows", rows)):
        if value is not None and (not isinstance(value, int) or value < 1):
            raise ArgumentError(f"load: {name} is {value!r}", remedy="pass a positive integer")
    source = os.fspath(path)
    config, weights = _folder(source) if Path(path).is_dir() else _gguf(read_gguf(path))
    make = _Stored(source, split_fused(weights, config.heads, config.shared_heads))
    decoder = Decoder(config, rows, min(config.context, _PLACES) if places is None else places, make)
    if make.weights:
        raise ArtifactError(f"{source}: unknown weights: {', '.join(sorted(make.weights)[:8])}")
    return decoder.eval()


def _folder(source: str) -> tuple[DecoderConfig, Weights]:
    values = read_config(Path(source, _CONFIG))
    tree: Any = read_weights(source).tree
    if not isinstance(tree, dict) or not all(isinstance(t, Tensor) for t in tree.values()):
        raise ArtifactError(f"{source}: the weights are not tensors by name")
    family = str(values.get("model_type"))
    weights = from_transformers(source, {name: t._values(force=True) for name, t in tree.items()}, family)
    config = decoder_config(values, frozenset(weights), source)
    if values.get("tie_word_embeddings", config.family.startswith("gemma")) and not config.tied:
        del weights["lm_head.weight"]
        config = decoder_config(values, frozenset(weights), source)
    return config, weights


def read_config(path: Path) -> dict[str, Any]:
    if not path.is_file() or path.stat().st_size > _MAX_CONFIG_BYTES:
        raise ArtifactError(f"{path}: not a configuration of at most {_MAX_CONFIG_BYTES} bytes")
    try:
        values = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{path}: not readable JSON: {error}") from None
    if not isinstance(values, dict):
        raise ArtifactError(f"{path}: it holds {type(values).__name__}, not an object")
    return values


def _gguf(file: GgufFile) -> tuple[DecoderConfig, Weights]:
    weights = from_gguf(file.tensors)
    table = weights.get("embed_tokens.weight")
    divisors = {name: dequantize(*file.tensors[name]) for name in DIVISORS if name in file.tensors}
    if table is None or len(table.shape) != 2:
        raise ArtifactError(f"{file.path}: the table of tokens (token_embd.weight) is missing or not a matrix")
    config = from_metadata(file.path, file.metadata, table.shape[0], frozenset(weights), divisors)
    return config, half_apart(weights, config) if config.family in INTERLEAVED else weights
