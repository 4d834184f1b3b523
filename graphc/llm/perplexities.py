"""Perplexity of a decoder on a text."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.base.sizes.named_dims import Dim
from graphc.calls.function import compile
from graphc.llm.decoder import Decoder
from graphc.nn import functional as F
from graphc.tape.grad_mode import no_grad
from graphc.tensors.creation import tensor
from graphc.tensors.tensor import Tensor

__all__ = ["perplexity"]


def perplexity(model: Decoder, tokens: Sequence[int], window: int = 512) -> float:
    """Return ``exp(-sum(log p(t[i] | tokens before it in its window)) / (n - 1))`` of ``n`` tokens (Jelinek et al.
    1977, https://doi.org/10.1121/1.2016299).

    Windows follow one another: each predicts ``window`` tokens, the last one the rest, and begins with the last token
    of the window before it. A compiled program computes the logits of a window. In evaluation mode products read the
    codes of quantized weights, in training mode their f32 elements.

    Args:
        model: a decoder of any number of rows.
        tokens: two tokens or more.
        window: tokens that a call predicts, at most ``model.places``. Each takes 4 bytes per token of the vocabulary.

    Raises:
        ArgumentError: fewer than two tokens, tokens outside of the vocabulary, or a window that does not fit.

    Example:
        >>> import graphc as gc
        >>> sizes = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "max_position_embeddings": 128}
        >>> values = {**sizes, "model_type": "llama", "num_hidden_layers": 1, "num_attention_heads": 4}
        >>> model = gc.llm.Decoder(gc.llm.decoder_config(values))
        >>> gc.llm.perplexity(model, [1, 2, 3, 4, 5], window=3) > 1
        True
    """
    numbers, vocabulary = np.asarray(tokens, np.int64), model.config.vocabulary
    if numbers.ndim != 1 or numbers.size < 2 or numbers.min() < 0 or numbers.max() >= vocabulary:
        raise ArgumentError(f"perplexity: tokens are two or more integers from 0 to {vocabulary - 1}")
    if isinstance(window, bool) or not isinstance(window, int) or not 1 <= window <= model.places:
        raise ArgumentError(
            f"perplexity: window is {window!r}", remedy=f"pass 1 to {model.places}, or load the model with more places"
        )

    def loss(tokens: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(model(tokens)[0], targets, reduction="sum")

    count = Dim("count", 1, window)
    compiled, total = compile(loss, dims={"tokens": (None, count), "targets": (count,)}), 0.0
    with no_grad():
        for start in range(0, numbers.size - 1, window):
            part = numbers[start : start + window + 1]
            total += float(compiled(tensor(part[None, :-1]), tensor(part[1:])))
    return exp(total / (numbers.size - 1))
