"""The table of workloads: which model, on which inputs, called or trained how."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.models import loops, more, small_loops, standard

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Spec:
    """One input array: its shape, and for indices the exclusive upper bound."""

    shape: tuple[int, ...]
    below: int | None = None

    def draw(self, generator: np.random.Generator) -> Array:
        """Return standard normal float32 values, or int64 indices."""
        if self.below is not None:
            return generator.integers(0, self.below, self.shape)
        return generator.standard_normal(self.shape, dtype=np.float32)


@dataclass(frozen=True)
class Workload:
    """One row of the table."""

    name: str
    build: Callable[[ModuleType], Any]
    """Function of a framework's ``nn`` that returns the module."""
    inputs: tuple[Spec, ...]
    target: Spec | None = None
    """Class indices of the training loss; None for inference."""
    optimizer: str = ""
    """``sgd`` (rate 0.01, momentum 0.9) or ``adam`` (rate 0.001); empty for inference."""
    log_probabilities: bool = False
    """The model ends in log_softmax, so the loss is nll_loss instead of cross_entropy."""
    dropout: bool = False
    """Training draws random bits, so that steps are compared with the model in evaluation mode."""
    dims: Mapping[int, str] = field(default_factory=dict)
    """Dimensions of the first input that an ONNX file leaves open, by number."""

    @property
    def train(self) -> bool:
        """Return True when a call is a training step."""
        return self.target is not None

    def draw_inputs(self) -> list[Array]:
        """Return the input arrays, the same ones for every peer."""
        generator = np.random.default_rng(zlib.crc32(self.name.encode()))
        return [spec.draw(generator) for spec in (*self.inputs, *((self.target,) if self.target else ()))]


@dataclass(frozen=True)
class LoopWorkload:
    """A training loop in the user's code, as one row of the table."""

    name: str
    make: Callable[[Any, loops.Wrap], loops.Loop]
    """Function of a framework, and of a wrapper for the loop's models."""
    train = True


def _images(batch: int, channels: int, side: int) -> tuple[Spec, ...]:
    return (Spec((batch, channels, side, side)),)


def _tokens(batch: int, length: int, vocabulary: int) -> tuple[Spec, ...]:
    return (Spec((batch, length), vocabulary),)


_ROWS = (
    Workload("policy_b1", standard.build_policy, (Spec((1, 17)),)),
    Workload("net_b1", standard.build_net, _images(1, 1, 28)),
    Workload("net_b64", standard.build_net, _images(64, 1, 28)),
    Workload("mlp_b1", standard.build_mlp, (Spec((1, 1024)),)),
    Workload("mlp_b64", standard.build_mlp, (Spec((64, 1024)),)),
    Workload("resnet50_b1", standard.build_resnet50, _images(1, 3, 224)),
    Workload("resnet50_b8", standard.build_resnet50, _images(8, 3, 224)),
    Workload("minilm_b1_t128", standard.build_minilm, _tokens(1, 128, 30000)),
    Workload("minilm_b8_t128", standard.build_minilm, _tokens(8, 128, 30000)),
    Workload("lstm_b1_t64", standard.build_lstm, (Spec((1, 64, 64)),)),
    Workload("pointwise_16M", standard.build_pointwise, (Spec((4096, 4096)), Spec((4096, 4096)))),
    Workload("pointwise_64K", standard.build_pointwise, (Spec((256, 256)), Spec((256, 256)))),
    Workload("rownorm_4096x1024", standard.build_rownorm, (Spec((4096, 1024)),)),
    Workload("mobilenet_b1", more.build_mobilenet, _images(1, 3, 224)),
    Workload("unet_b1", more.build_unet, _images(1, 3, 128)),
    Workload("vit_b1", more.build_vit, _images(1, 3, 224)),
    Workload("gpt_b1_t128", standard.build_gpt, _tokens(1, 128, 256)),
    Workload("gpt_b1_t1024", more.build_long_gpt, _tokens(1, 1024, 256)),
    Workload("minilm_b1_t512", standard.build_minilm, _tokens(1, 512, 30000)),
    Workload("gru_b8_t64", more.build_gru, (Spec((8, 64, 64)),)),
    Workload("autoencoder_b16", more.build_autoencoder, _images(16, 3, 64)),
    Workload("tcn_b8", more.build_tcn, (Spec((8, 8, 256)),)),
    Workload("textcnn_b8", more.build_textcnn, _tokens(8, 60, 2000)),
    Workload("dlrm_b8", more.build_dlrm, (Spec((8, 13)), Spec((8, 8, 4), 1000))),
    Workload("llama_b1_t64", more.build_llama, _tokens(1, 64, 4000)),
    Workload(
        "train_net_b64",
        standard.build_net,
        _images(64, 1, 28),
        Spec((64,), 10),
        "sgd",
        log_probabilities=True,
        dropout=True,
    ),
    Workload("train_mlp_b64", standard.build_mlp, (Spec((64, 1024)),), Spec((64,), 1000), "sgd"),
    Workload("train_policy_b256", standard.build_policy, (Spec((256, 17)),), Spec((256,), 6), "adam"),
    Workload("train_gpt_b8_t128", standard.build_gpt, _tokens(8, 128, 256), Spec((8, 128), 256), "adam"),
    Workload("train_gpt_b1_t1024", more.build_long_gpt, _tokens(1, 1024, 256), Spec((1, 1024), 256), "adam"),
    Workload("train_textcnn_b8", more.build_textcnn, _tokens(8, 60, 2000), Spec((8,), 5), "adam"),
    Workload("train_vit_b8", more.build_vit, _images(8, 3, 224), Spec((8,), 1000), "adam"),
    Workload("train_resnet50_b4", standard.build_resnet50, _images(4, 3, 224), Spec((4,), 1000), "sgd"),
)
WORKLOADS = {row.name: row for row in _ROWS}
"""Models and training steps, which are measured by default."""

_LAYERS = (
    Workload("layers_4096x4096", lambda nn: nn.Linear(4096, 4096, bias=False), (Spec((1, 4096)),)),
    Workload("layers_768x3072", lambda nn: nn.Linear(768, 3072, bias=False), (Spec((1, 768)),)),
    Workload(
        "layers_768x3072x768", lambda nn: nn.Sequential(nn.Linear(768, 3072), nn.Linear(3072, 768)), (Spec((1, 768)),)
    ),
)
_OPEN = {"mlp_b64": ("batch",), "net_b64": ("batch",), "textcnn_b8": ("batch",), "minilm_b8_t128": ("batch", "time")}
_MORE = (
    *_LAYERS,
    *(replace(WORKLOADS[name], name=f"{name}_open", dims=dict(enumerate(dims))) for name, dims in _OPEN.items()),
)
LOOPS = {name: LoopWorkload(name, loop) for name, loop in loops.LOOPS.items()}
SMALL_LOOPS = {name: LoopWorkload(name, partial(small_loops.SmallLoop, f)) for name, f in small_loops.EAGER.items()}
ALL: dict[str, Workload | LoopWorkload] = {
    **WORKLOADS,
    **{workload.name: workload for workload in _MORE},
    **LOOPS,
    **SMALL_LOOPS,
}
"""Everything that the table can measure: also layers, models with open sizes in ONNX files, and training loops."""
