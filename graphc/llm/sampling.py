"""Choice of the next token from logits: penalty, temperature, filters, and a draw, as ops of a compiled program."""

from __future__ import annotations

from math import isfinite

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.base.locks import cached_property
from graphc.base.records import dataclass
from graphc.tensors.creation import arange, rand, tensor
from graphc.tensors.free_functions import where
from graphc.tensors.random.sampling import ArgumentGenerator
from graphc.tensors.tensor import Tensor

__all__ = ["Sampling"]

_TOP_K_LIMIT = 1 << 24
"""Largest ``top_k``: the settings are f32, which holds integers up to here."""


@dataclass(frozen=True)
class Sampling:
    """Settings of the choice of tokens, applied in the order of the fields, as in ``transformers``. The default takes
    the most likely token.

    Raises ArgumentError for values outside of their range.

    Example:
        >>> import graphc as gc
        >>> gc.llm.Sampling(temperature=0.8, top_p=0.9, seed=1).top_p
        0.9
    """

    repetition_penalty: float = 1.0
    """Logits above 0 of tokens in the text so far, prompt included, are divided by it, others of such tokens multiplied
    (Keskar et al. 2019, CTRL, in the form for logits of both signs of ``transformers``)."""
    temperature: float = 0.0
    """Logits are divided by it; 0 takes the most likely token and ignores the other fields below."""
    top_k: int = 0
    """Number of the most likely tokens to choose from; 0 means all."""
    top_p: float = 1.0
    """The most likely tokens are kept until their probabilities add up to it (Holtzman et al. 2020)."""
    min_p: float = 0.0
    """Tokens are kept whose probability is at least this fraction of the largest one."""
    seed: int = 0
    """Start of the random numbers; the number at a position depends on the seed and the position alone."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ArgumentError(f"Sampling: {name} is {value!r}", remedy="pass a number")
        ranges = {
            "repetition_penalty": (self.repetition_penalty > 0.0, "above 0"),
            "temperature": (self.temperature >= 0, "0 or more"),
            "top_k": (isinstance(self.top_k, int) and 0 <= self.top_k <= _TOP_K_LIMIT, "an integer from 0 to 2**24"),
            "top_p": (0 < self.top_p <= 1, "above 0 and at most 1"),
            "min_p": (0 <= self.min_p <= 1, "from 0 to 1"),
            "seed": (isinstance(self.seed, int) and 0 <= self.seed < 1 << 63, "an integer from 0 to 2**63 - 1"),
        }
        for name, (valid, range_text) in ranges.items():
            value = getattr(self, name)
            if not valid or not isfinite(value):
                raise ArgumentError(f"Sampling: {name} is {value!r}", remedy=f"pass a number that is {range_text}")

    @cached_property
    def settings(self) -> Tensor:
        """Return the fields but the seed as f32[5], in the order of the fields."""
        fields = (self.repetition_penalty, self.temperature, self.top_k, self.top_p, self.min_p)
        return tensor(np.array(fields, np.float32))

    @property
    def takes_likeliest(self) -> bool:
        """Whether the next token is the one with the largest logit."""
        return self.temperature == 0 and self.repetition_penalty == 1

    def drawn(self) -> Sampling:
        """Return settings for a program that draws: the most likely token is a draw from one token."""
        return self if self.temperature > 0 else Sampling(self.repetition_penalty, temperature=1.0, top_k=1)

    def random_state(self, position: int) -> Tensor:
        """Return the state i64[2] of the random number at a position."""
        return tensor(np.array((self.seed, position), np.int64))


def choose(logits: Tensor, history: Tensor, draws: bool, settings: Tensor, random: Tensor) -> Tensor:
    """Return a token i64[1, 1] for logits f32[1, vocabulary] and the tokens so far i64[1, count].

    ``draws``, ``settings`` and ``random`` are those of a ``Sampling``: whether its temperature is above 0,
    ``settings`` and ``random_state(position)``. Programs are compiled for each value of ``draws``: sorting all tokens
    takes a large part of the time of small models.
    """
    logits = penalized(logits, history, settings[0])
    return _draw(logits, settings, random) if draws else logits.argmax(-1, keepdim=True)


def penalized(logits: Tensor, history: Tensor, penalty: Tensor) -> Tensor:
    """Return logits [1, vocabulary] with those of the tokens in ``history`` [1, count] lowered."""
    seen = logits.gather(1, history)
    return logits.scatter(1, history, where(seen > 0, seen / penalty, seen * penalty))


def candidates(logits: Tensor, settings: Tensor) -> tuple[Tensor, Tensor]:
    """Return the kept tokens' cumulative probabilities up to a factor, f32[1, vocabulary] with 0 for the other tokens,
    and the tokens i64[1, vocabulary], most likely first."""
    # Each filter keeps the first tokens of this order, so that one cumulative sum serves all.
    logits, tokens = (logits / settings[1]).sort(-1, descending=True)
    weights = (logits - logits[:, :1]).exp()
    rank = arange(logits.shape[-1])[None]
    weights = where((settings[2] > 0) & (rank >= settings[2]), 0.0, weights)
    cumulative = weights.cumsum(-1)
    before = cumulative - weights
    keep = (weights > 0) & (before < settings[3] * cumulative[:, -1:]) & (weights >= settings[4])
    return where(keep, cumulative, 0.0), tokens


def _draw(logits: Tensor, settings: Tensor, random: Tensor) -> Tensor:
    cumulative, tokens = candidates(logits, settings)
    level = rand(1, 1, generator=ArgumentGenerator(random)) * cumulative.amax(-1, keepdim=True)
    return tokens.gather(1, ((cumulative > 0) & (cumulative <= level)).sum(-1, keepdim=True))
