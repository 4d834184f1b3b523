"""Public models with random weights, as torchvision, timm and transformers make them; nothing is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch

from benchmarks.harness.timing import find_library
from graphc.base.installation import group_command


@dataclass(frozen=True)
class Model:
    """One architecture of a collection."""

    name: str
    collection: str
    make: Callable[[ModuleType], Any]
    """The module, made by the functions of its library."""
    inputs: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    """Arguments of a call, by name; a model of images takes one image instead."""
    side: int = 0
    """Height and width of the image."""

    @property
    def key(self) -> str:
        """Return the name that no other model has."""
        return f"{self.collection}/{self.name}"

    def build(self) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """Return the module in evaluation mode, and the arguments of a call. ImportError where the library is
        missing."""
        library = load_collection(self.collection)
        torch.manual_seed(0)
        module = self.make(library).eval()
        vary(module)
        if self.side:
            return module, (torch.randn(1, 3, self.side, self.side),), {}
        return module, (), {name: make() for name, make in self.inputs.items()}


def load_collection(name: str) -> ModuleType:
    """Import the library; raise ImportError where it is missing.

    timm and transformers import torchvision, whose compiled operators do not load beside each build of torch. No model
    here needs them, so the declarations of their results are skipped then.
    """
    register = torch.library.register_fake

    def without_own(operator: Any, *args: Any, **kwargs: Any) -> Any:
        if str(operator).startswith("torchvision::"):
            return lambda function: function
        return register(operator, *args, **kwargs)

    torch.library.register_fake = without_own
    try:
        find_library("torchvision.models")
    finally:
        torch.library.register_fake = register
    library = find_library(name)
    if library is None:
        raise ImportError(f"{name} is not installed: {group_command('hub')}")
    return library


def vary(module: Any) -> None:
    """Redraw, near their values, the parameters and statistics whose elements are all equal: branches that begin at
    zero, such as the last scale of a residual block, would hide their contents."""
    with torch.no_grad():
        for value in [*module.parameters(), *module.buffers()]:
            if not value.is_floating_point() or value.numel() < 2 or bool((value != value.flatten()[0]).any()):
                continue
            if value.flatten()[0] == 1:
                value.uniform_(0.75, 1.25)
            elif abs(float(value.flatten()[0])) < 0.1:
                value.normal_(0.0, 0.1)


def _vision(name: str, side: int = 224, **options: Any) -> Model:
    def make(library: Any) -> Any:
        return library.models.get_model(name, weights=None, **options)

    return Model(name, "torchvision", make, side=side)


def _timm(name: str, side: int = 224, **options: Any) -> Model:
    return Model(name, "timm", lambda library: library.create_model(name, pretrained=False, **options), side=side)


TORCHVISION = (
    *map(_vision, ("alexnet", "vgg11", "resnet50", "squeezenet1_1", "densenet121", "shufflenet_v2_x1_0")),
    _vision("googlenet", aux_logits=False, init_weights=True),
    *map(_vision, ("mobilenet_v2", "mobilenet_v3_small", "regnet_y_400mf", "convnext_tiny")),
    *map(_vision, ("vit_b_16", "swin_t", "maxvit_t")),
)

TIMM = (
    *map(_timm, ("resnet18", "efficientnet_b0", "mobilenetv3_small_100", "convnext_atto", "vit_tiny_patch16_224")),
    *map(_timm, ("regnetx_002", "densenet121", "swin_tiny_patch4_window7_224", "mixer_s16_224", "ghostnet_100")),
    *map(_timm, ("repvgg_a0", "deit_tiny_patch16_224", "coatnet_0_rw_224", "poolformer_s12", "xcit_nano_12_p16_224")),
    *map(_timm, ("cait_xxs24_224", "coat_lite_tiny", "convit_tiny", "cs3darknet_s", "dla34", "dpn48b")),
    *map(_timm, ("edgenext_xx_small", "efficientformer_l1", "efficientvit_b0", "eva02_tiny_patch14_224", "fastvit_t8")),
    *map(_timm, ("gcvit_xxtiny", "hrnet_w18_small", "levit_128s", "mvitv2_tiny", "nf_regnet_b0", "pit_ti_224")),
    *map(_timm, ("pvt_v2_b0", "res2net50_14w_8s", "resnest14d", "sequencer2d_s")),
    _timm("inception_v3", 299),
    _timm("crossvit_tiny_240", 240),
    *(_timm(name, 256) for name in ("botnet26t_256", "mobilevit_xxs")),
)


def _words(length: int = 48) -> Callable[[], Any]:
    return lambda: torch.randint(3, 900, (1, length))


def _image(side: int = 64) -> Callable[[], Any]:
    return lambda: torch.randn(1, 3, side, side)


def _no() -> bool:
    return False


def _hf(name: str, kind: str, inputs: Mapping[str, Callable[[], Any]], config: str = "", **sizes: Any) -> Model:
    """Return a model of transformers: its class, and what its configuration is made of."""

    def make(library: Any) -> Any:
        settings = config or f"{kind.removesuffix('Model').removesuffix('ForCausalLM')}Config"
        return getattr(library, kind)(getattr(library, settings)(**sizes))

    return Model(name, "transformers", make, inputs)


_WIDTHS = {"hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 256}
_WORDS = {"vocab_size": 1000, **_WIDTHS}
_DECODED = {"input_ids": _words(), "use_cache": _no}
_TWO = {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4}
_TWO |= {"decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128}
_MARKS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
_BOTH = {"input_ids": _words(), "decoder_input_ids": _words(24), "use_cache": _no}

TRANSFORMERS = (
    _hf("bert", "BertModel", {"input_ids": _words()}, **_WORDS),
    _hf("distilbert", "DistilBertModel", {"input_ids": _words()}, vocab_size=1000, dim=128, n_layers=3, n_heads=4),
    _hf("gpt2", "GPT2LMHeadModel", _DECODED, "GPT2Config", vocab_size=1000, n_embd=128, n_layer=3, n_head=4),
    _hf("llama", "LlamaForCausalLM", _DECODED, num_key_value_heads=2, **_WORDS),
    _hf("qwen2", "Qwen2ForCausalLM", _DECODED, num_key_value_heads=2, **_WORDS),
    _hf("mistral", "MistralForCausalLM", _DECODED, num_key_value_heads=2, sliding_window=32, **_WORDS),
    _hf("gemma", "GemmaForCausalLM", _DECODED, num_key_value_heads=1, head_dim=32, **_WORDS),
    _hf("t5", "T5Model", _BOTH, vocab_size=1000, d_model=128, num_layers=3, num_heads=4, d_ff=256, d_kv=32),
    _hf("bart", "BartModel", _BOTH, vocab_size=1000, **_TWO, **_MARKS),
    _hf(
        "whisper",
        "WhisperModel",
        {"input_features": lambda: torch.randn(1, 80, 200), "decoder_input_ids": _words(24), "use_cache": _no},
        **{"vocab_size": 1000, "max_source_positions": 100, **_TWO, **_MARKS},
    ),
    _hf("vit", "ViTModel", {"pixel_values": _image()}, image_size=64, patch_size=8, **_WIDTHS),
    _hf(
        "clip",
        "CLIPModel",
        {"input_ids": _words(24), "pixel_values": _image()},
        **{"text_config": _WORDS, "vision_config": {"image_size": 64, "patch_size": 8, **_WIDTHS}},
    ),
    _hf(
        "deberta",
        "DebertaV2Model",
        {"input_ids": _words()},
        **{"relative_attention": True, "pos_att_type": ["p2c", "c2p"], **_WORDS},
    ),
    _hf("convnext", "ConvNextModel", {"pixel_values": _image()}, hidden_sizes=[32, 64, 96, 128], depths=[1, 1, 2, 1]),
    _hf("segformer", "SegformerForSemanticSegmentation", {"pixel_values": _image()}, "SegformerConfig"),
    _hf(
        "detr",
        "DetrForObjectDetection",
        {"pixel_values": _image(96), "pixel_mask": lambda: torch.ones(1, 96, 96, dtype=torch.int64)},
        "DetrConfig",
        **{"num_queries": 20, "use_timm_backbone": True, "use_pretrained_backbone": False, **_TWO},
    ),
    _hf("mamba", "MambaModel", _DECODED, vocab_size=1000, hidden_size=128, num_hidden_layers=3, state_size=8),
    _hf("mobilebert", "MobileBertModel", {"input_ids": _words()}, vocab_size=1000, num_hidden_layers=2),
    _hf("wav2vec2", "Wav2Vec2Model", {"input_values": lambda: torch.randn(1, 4000)}, **_WORDS),
    _hf(
        "swin",
        "SwinModel",
        {"pixel_values": _image()},
        **{"image_size": 64, "patch_size": 4, "embed_dim": 32, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4},
    ),
)

MODELS = {model.key: model for model in (*TORCHVISION, *TIMM, *TRANSFORMERS)}

_SMALL = ("resnet18", "mobilenetv3_small_100", "convnext_atto", "regnetx_002", "ghostnet_100")
TRAINED = {
    **{f"timm/{name}": _timm(name, 64, num_classes=10) for name in _SMALL},
    "timm/vit_tiny_patch16_224": _timm("vit_tiny_patch16_224", 64, num_classes=10, img_size=64),
    **{
        f"transformers/{name}": MODELS[f"transformers/{name}"]
        for name in ("bert", "distilbert", "gpt2", "bart", "vit", "mobilebert")
    },
}
"""Models for training; those of images are small enough for some steps in f64. No model computes in f32 regardless of
its weights, as the normalization of Llama and T5 does, so that f64 results are compared to the last digits."""
