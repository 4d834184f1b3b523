"""Low-rank adapters (LoRA) beside the linear layers of a frozen model, in the files of the package ``peft``."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from graphc.base.errors import ArgumentError, ArtifactError, UnsupportedError
from graphc.checkpoints.safetensors_file import load_safetensors, save_safetensors
from graphc.llm.block_layers import BlockLinear
from graphc.llm.config import Fields
from graphc.llm.decoder import Decoder
from graphc.llm.loading import read_config
from graphc.nn import init
from graphc.nn.module import Module
from graphc.nn.modules.linear import Linear
from graphc.nn.parameter import Parameter
from graphc.tape.grad_mode import no_grad
from graphc.tensors.tensor import Tensor

__all__ = ["LoraLinear", "add_lora", "load_lora", "lora_state", "merge_lora", "save_lora"]

M = TypeVar("M", bound=Module)
_WEIGHTS, _CONFIG = "adapter_model.safetensors", "adapter_config.json"
_MATRICES = ("lora_A", "lora_B")
_PREFIX = "base_model.model."
_OTHER_FORMULAS = (
    "alora_invocation_tokens",
    "alpha_pattern",
    "arrow_config",
    "fan_in_fan_out",
    "layer_replication",
    "lora_bias",
    "modules_to_save",
    "rank_pattern",
    "use_bdlora",
    "use_dora",
    "use_qalora",
    "use_rslora",
)
"""Fields of a configuration that change the formula or the layers, unless empty or false."""


class LoraLinear(Module):
    """``base_layer(x) + alpha / rank * x @ A.T @ B.T`` with ``lora_A.weight`` [rank, in_features] and ``lora_B.weight``
    [out_features, rank] (Hu et al. 2021, https://arxiv.org/abs/2106.09685).

    A is random and B is zero, so that training begins at the base layer.
    """

    def __init__(self, base_layer: Linear | BlockLinear, rank: int, alpha: float):
        super().__init__()
        self.rank, self.alpha = rank, alpha
        self.in_features, self.out_features = base_layer.in_features, base_layer.out_features
        self.base_layer = base_layer
        self.lora_A = Linear(self.in_features, rank, bias=False)
        self.lora_B = Linear(rank, self.out_features, bias=False)
        init.zeros_(self.lora_B.weight)
        self.train(base_layer.training)

    def forward(self, input: Tensor) -> Tensor:
        """Map [..., in_features] to [..., out_features]."""
        return self.base_layer(input) + self.lora_B(self.lora_A(input)) * (self.alpha / self.rank)

    def merged(self) -> Linear:
        """Return the f32 layer that computes the same."""
        base = self.base_layer
        weight = base.weight.dense() if isinstance(base, BlockLinear) else base.weight
        with no_grad():
            weight = weight + self.lora_B.weight @ self.lora_A.weight * (self.alpha / self.rank)
        layer = Linear(1, 1, bias=False)
        layer.in_features, layer.out_features = self.in_features, self.out_features
        layer.weight = Parameter(weight, requires_grad=False)
        layer.register_parameter("bias", base.bias)
        return layer.train(self.training)

    def extra_repr(self) -> str:
        return f"rank={self.rank}, alpha={self.alpha}"


def _linear_layers(model: Module) -> dict[str, Linear | BlockLinear]:
    return {path: layer for path, layer in model.named_modules() if path and isinstance(layer, Linear | BlockLinear)}


def _adapters(model: Module) -> Iterator[tuple[str, LoraLinear]]:
    return ((path, layer) for path, layer in model.named_modules() if isinstance(layer, LoraLinear))


def _present_adapters(call: str, model: Module) -> dict[str, LoraLinear]:
    adapters = dict(_adapters(model))
    if not adapters:
        raise ArgumentError(f"{call}: the model has no adapters", remedy="add them with add_lora or load_lora")
    return adapters


def _matches(path: str, target: str) -> bool:
    return path == target or path.endswith(f".{target}")


def add_lora(model: M, rank: int = 8, alpha: float = 16.0, targets: Sequence[str] = ("q_proj", "v_proj")) -> M:
    """Freeze all parameters of a model and put a trainable ``LoraLinear`` around each of its ``targets``.

    Quantized layers stay quantized. Call ``train()`` before training: gradients pass quantized layers in training mode
    only.

    Args:
        model: a ``Decoder``, or another module with linear layers; it is changed.
        rank: rows of A and columns of B.
        alpha: scale of the adapters, divided by ``rank``.
        targets: last parts of the layers' names, or whole names.

    Returns:
        The model.

    Raises:
        ArgumentError: ``rank`` is not a positive integer, ``alpha`` is not finite, a target is not the name of a linear
            layer, or the model has adapters.

    Example:
        >>> import graphc as gc
        >>> model = gc.nn.Sequential(gc.nn.Linear(4, 6), gc.nn.Linear(6, 3))
        >>> gc.llm.add_lora(model, rank=2, targets=["1"])[1]
        LoraLinear(
          rank=2, alpha=16.0
          (base_layer): Linear(in_features=6, out_features=3, bias=True)
          (lora_A): Linear(in_features=6, out_features=2, bias=False)
          (lora_B): Linear(in_features=2, out_features=3, bias=False)
        )
        >>> [name for name, p in model.named_parameters() if p.requires_grad]
        ['1.lora_A.weight', '1.lora_B.weight']
    """
    if isinstance(rank, bool) or not isinstance(rank, int) or rank < 1:
        raise ArgumentError(f"add_lora: rank is {rank!r}", remedy="pass a positive integer")
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not math.isfinite(alpha):
        raise ArgumentError(f"add_lora: alpha is {alpha!r}", remedy="pass a finite number")
    _check_plain("add_lora", model)
    layers = _linear_layers(model)
    targets = [targets] if isinstance(targets, str) else list(targets)
    unknown = [t for t in targets if not any(_matches(path, t) for path in layers)]
    if unknown or not targets:
        names = ", ".join(sorted({path.rpartition(".")[2] for path in layers}))
        raise ArgumentError(
            f"add_lora: no linear layer has the name {', '.join(map(repr, unknown)) or '(targets are empty)'}",
            remedy=f"pass some of {names}",
        )
    _wrap(model, [p for p in layers if any(_matches(p, t) for t in targets)], rank, float(alpha))
    return model


def _check_plain(call: str, model: Module) -> None:
    if any(_adapters(model)):
        raise ArgumentError(f"{call}: the model has adapters", remedy="merge them first: merge_lora(model)")


def _wrap(model: Module, paths: Sequence[str], rank: int, alpha: float) -> None:
    layers = _linear_layers(model)
    model.requires_grad_(False)
    for path in paths:
        model.set_submodule(path, LoraLinear(layers[path], rank, alpha))


def merge_lora(model: M) -> M:
    """Replace each ``LoraLinear`` by the f32 ``Linear`` of ``base + alpha / rank * B @ A``. Return the model.

    The weight of a quantized layer becomes f32, too: 32 bits an element instead of about 4.5 or 8.5. Merged weights are
    frozen. Raises ArgumentError for a model without adapters.
    """
    for path, adapter in _present_adapters("merge_lora", model).items():
        model.set_submodule(path, adapter.merged())
    return model


def _file_name(model: Module, path: str) -> str:
    """Return the name of a layer in files of adapters; ``transformers`` has the decoder without logits in ``model``."""
    inside = "model." if isinstance(model, Decoder) and path != "lm_head" else ""
    return f"{_PREFIX}{inside}{path}"


def lora_state(model: Module) -> dict[str, Tensor]:
    """Return the weights of a model's adapters under the names that ``peft`` gives them in files.

    Raises ArgumentError for a model without adapters.
    """
    adapters = _present_adapters("lora_state", model).items()
    return {f"{_file_name(model, p)}.{m}.weight": getattr(a, m).weight.detach() for p, a in adapters for m in _MATRICES}


def save_lora(model: Module, folder: str | os.PathLike[str], base_model: str | None = None) -> None:
    """Write the adapters of a model as ``adapter_model.safetensors`` and ``adapter_config.json``, as ``peft`` does.

    ``PeftModel.from_pretrained(model, folder)`` reads them for the same model of ``transformers``; ``base_model`` names
    it in the configuration. Raises ArgumentError for a model without adapters; OSError.
    """
    adapters, state = _present_adapters("save_lora", model), lora_state(model)
    first = next(iter(adapters.values()))
    plain = [path for path in _linear_layers(model) if not path.endswith((".base_layer", *_MATRICES))]
    parts = {path.rpartition(".")[2] for path in adapters}
    partial = {part for part in parts if any(_matches(path, part) for path in plain)}
    targets = (parts - partial) | {path for path in adapters if path.rpartition(".")[2] in partial}
    config = {
        "base_model_name_or_path": base_model,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "init_lora_weights": True,
        "lora_alpha": first.alpha,
        "lora_dropout": 0.0,
        "peft_type": "LORA",
        "r": first.rank,
        "target_modules": sorted(targets),
        "task_type": "CAUSAL_LM" if isinstance(model, Decoder) else None,
    }
    os.makedirs(folder, exist_ok=True)
    Path(folder, _CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    save_safetensors(state, Path(folder, _WEIGHTS), {"format": "pt"})


def load_lora(model: M, folder: str | os.PathLike[str]) -> M:
    """Freeze a model and put the adapters of a folder, written by ``save_lora`` or ``peft``, around its layers.

    Args:
        model: the model that the adapters were trained for; it is changed.
        folder: a folder with ``adapter_model.safetensors`` and ``adapter_config.json``.

    Returns:
        The model. Its adapters can be trained on.

    Raises:
        ArtifactError: the files are damaged, or the adapters have layers or shapes that the model lacks.
        UnsupportedError: another method than LoRA of linear layers with one rank, such as DoRA.
        ArgumentError: the model has adapters, or the package ``safetensors`` is missing.
        OSError: the files cannot be read.
    """
    _check_plain("load_lora", model)
    source = os.fspath(folder)
    values = read_config(Path(folder, _CONFIG))
    other = [field for field in _OTHER_FORMULAS if values.get(field)]
    if values.get("peft_type") != "LORA" or values.get("bias", "none") != "none" or other:
        described = ", ".join(other) or f"{values.get('peft_type')!r} with bias {values.get('bias')!r}"
        raise UnsupportedError(
            f"{source}: adapters with {described}", remedy="merge them with peft, then load the model"
        )
    fields = Fields(source, values)
    rank, alpha = fields.integer("r"), float(fields.number("lora_alpha"))
    tensors = load_safetensors(Path(folder, _WEIGHTS))
    layers, shapes = {}, {}
    for path, layer in _linear_layers(model).items():
        names = [f"{_file_name(model, path)}.{matrix}.weight" for matrix in _MATRICES]
        if any(name in tensors for name in names):
            layers[path] = names
            shapes |= dict(zip(names, ((rank, layer.in_features), (layer.out_features, rank)), strict=True))
    unknown = sorted(tensors.keys() ^ shapes.keys())
    if unknown or not shapes:
        raise ArtifactError(f"{source}: the model has no such layers, or parts are missing: {', '.join(unknown[:8])}")
    for name, shape in shapes.items():
        if tuple(tensors[name].shape) != shape:
            raise ArtifactError(f"{source}: {name!r} has shape {list(tensors[name].shape)}, not {list(shape)}")
    _wrap(model, list(layers), rank, alpha)
    adapters = dict(_adapters(model))
    with no_grad():
        for path, names in layers.items():
            for matrix, name in zip(_MATRICES, names, strict=True):
                getattr(adapters[path], matrix).weight.copy_(tensors[name])
    return model
