"""Functions of the package whose arguments differ in order or name from those in ``functional``.

``graphc.batch_norm`` and ``graphc.embedding`` take the arguments of ``torch.batch_norm`` and ``torch.embedding``.
Functions with the same arguments under both paths are not wrapped.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from graphc.base.errors import ArgumentError, AttributeValueError
from graphc.nn.functional.dropouts import alpha_dropout as _alpha_dropout
from graphc.nn.functional.dropouts import dropout as _dropout
from graphc.nn.functional.dropouts import feature_alpha_dropout as _feature_alpha_dropout
from graphc.nn.functional.loss import binary_cross_entropy_with_logits as _binary_cross_entropy_with_logits
from graphc.nn.functional.loss import kl_div as _kl_div
from graphc.nn.functional.loss_ctc import ctc_loss as _ctc_loss
from graphc.nn.functional.loss_regression import cosine_embedding_loss as _cosine_embedding_loss
from graphc.nn.functional.loss_regression import hinge_embedding_loss as _hinge_embedding_loss
from graphc.nn.functional.loss_regression import margin_ranking_loss as _margin_ranking_loss
from graphc.nn.functional.loss_regression import poisson_nll_loss as _poisson_nll_loss
from graphc.nn.functional.loss_regression import triplet_margin_loss as _triplet_margin_loss
from graphc.nn.functional.normalization import batch_norm as _batch_norm
from graphc.nn.functional.normalization import group_norm as _group_norm
from graphc.nn.functional.normalization import instance_norm as _instance_norm
from graphc.nn.functional.normalization import layer_norm as _layer_norm
from graphc.nn.functional.recurrent import recurrent_cell
from graphc.nn.functional.sampling_grid import affine_grid as _affine_grid
from graphc.nn.functional.sampling_grid import grid_sample as _grid_sample
from graphc.nn.functional.sparse import embedding as _embedding
from graphc.nn.functional.vision import pad as _pad
from graphc.tensors.tensor import Tensor

_REDUCTIONS = ("none", "mean", "sum")
_SAMPLING = ("bilinear", "nearest", "bicubic")
_OUTSIDE = ("zeros", "border", "reflection")
_NUMBERED = {"reduction": _REDUCTIONS, "interpolation_mode": _SAMPLING, "padding_mode": _OUTSIDE}
"""Arguments that select one of several names by its number."""
_NAMES = {"train": "training", "indices": "input", "interpolation_mode": "mode"}
"""Names of arguments here, and in ``functional``."""
_UNUSED = ("cudnn_enable", "cudnn_enabled")
"""Arguments that select a library that graphc does not use."""


def _ordered(name: str, function: Callable[..., Any], order: str) -> Callable[..., Any]:
    """Wrap ``function``: arguments of these names in this order are passed on by name."""
    parameters = order.split()

    def call(*args: Any, **kwargs: Any) -> Any:
        arguments = dict(zip(parameters, args, strict=False)) | kwargs
        if len(arguments) != len(args) + len(kwargs) or not arguments.keys() <= set(parameters):
            raise ArgumentError(
                f"{name} takes the arguments {', '.join(parameters)}",
                remedy=f"call nn.functional.{name} for other arguments",
            )
        named = {key: _named(name, key, value) for key, value in arguments.items() if key not in _UNUSED}
        return function(**{_NAMES.get(key, key): value for key, value in named.items()})

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Call the function of ``nn.functional`` with the arguments {', '.join(parameters)}."
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(n, kind, default=None) for n in parameters]
    )
    return call


def _named(function: str, key: str, value: Any) -> Any:
    """Return the name selected by the number of an argument; raise AttributeValueError for an unknown number."""
    names = _NUMBERED.get(key)
    if names is None or value in names:
        return value
    if value not in range(len(names)):
        raise AttributeValueError(
            f"{function}: {key} is {value!r}", remedy=f"pass 0 to {len(names) - 1}: {', '.join(names)}"
        )
    return names[value]


def _rows(padding_idx: int = -1, **options: Any) -> Tensor:
    """Call ``functional.embedding``; a negative ``padding_idx`` means no padding row and does not count from the
    end."""
    return _embedding(**options, padding_idx=None if padding_idx is None or padding_idx < 0 else padding_idx)


_STATISTICS = "input weight bias running_mean running_var"
affine_grid_generator = _ordered("affine_grid_generator", _affine_grid, "theta size align_corners")
alpha_dropout = _ordered("alpha_dropout", _alpha_dropout, "input p train")
alpha_dropout_ = _ordered("alpha_dropout_", functools.partial(_alpha_dropout, inplace=True), "input p train")
batch_norm = _ordered("batch_norm", _batch_norm, f"{_STATISTICS} training momentum eps cudnn_enabled")
binary_cross_entropy_with_logits = _ordered(
    "binary_cross_entropy_with_logits", _binary_cross_entropy_with_logits, "input target weight pos_weight reduction"
)
cosine_embedding_loss = _ordered(
    "cosine_embedding_loss", _cosine_embedding_loss, "input1 input2 target margin reduction"
)
constant_pad_nd = _ordered("constant_pad_nd", _pad, "input pad value")
ctc_loss = _ordered(
    "ctc_loss", _ctc_loss, "log_probs targets input_lengths target_lengths blank reduction zero_infinity"
)
dropout = _ordered("dropout", _dropout, "input p train")
dropout_ = _ordered("dropout_", functools.partial(_dropout, inplace=True), "input p train")
embedding = _ordered("embedding", _rows, "weight indices padding_idx scale_grad_by_freq sparse")
feature_alpha_dropout = _ordered("feature_alpha_dropout", _feature_alpha_dropout, "input p train")
grid_sampler = _ordered("grid_sampler", _grid_sample, "input grid interpolation_mode padding_mode align_corners")
group_norm = _ordered("group_norm", _group_norm, "input num_groups weight bias eps cudnn_enabled")
hinge_embedding_loss = _ordered("hinge_embedding_loss", _hinge_embedding_loss, "input target margin reduction")
instance_norm = _ordered("instance_norm", _instance_norm, f"{_STATISTICS} use_input_stats momentum eps cudnn_enabled")
kl_div = _ordered("kl_div", _kl_div, "input target reduction log_target")
layer_norm = _ordered("layer_norm", _layer_norm, "input normalized_shape weight bias eps cudnn_enable")
margin_ranking_loss = _ordered("margin_ranking_loss", _margin_ranking_loss, "input1 input2 target margin reduction")
poisson_nll_loss = _ordered("poisson_nll_loss", _poisson_nll_loss, "input target log_input full eps reduction")
triplet_margin_loss = _ordered(
    "triplet_margin_loss", _triplet_margin_loss, "anchor positive negative margin p eps swap reduction"
)


def _cell(name: str, kind: str) -> Callable[..., Any]:
    def cell(
        input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
    ) -> Any:
        several = not isinstance(hx, Tensor)
        state = recurrent_cell(kind, input, tuple(hx) if several else (hx,), w_ih, w_hh, b_ih, b_hh)
        return state if several else state[0]

    cell.__name__ = cell.__qualname__ = name
    cell.__doc__ = f"Run one step of a layer of kind {kind}: input [batch, size], state(s) [batch, hidden]."
    return cell


gru_cell, lstm_cell = _cell("gru_cell", "GRU"), _cell("lstm_cell", "LSTM")
rnn_relu_cell, rnn_tanh_cell = _cell("rnn_relu_cell", "RNN_RELU"), _cell("rnn_tanh_cell", "RNN_TANH")
_OWN = tuple(vars().items())
__all__ = [n for n, v in _OWN if not n.startswith("_") and getattr(v, "__module__", "") == __name__]  # pyright: ignore[reportUnsupportedDunderAll]
