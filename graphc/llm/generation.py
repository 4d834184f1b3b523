"""Greedy generation: a compiled program reads the prompt in blocks, another one computes a token per call."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.base.sizes.named_dims import Dim
from graphc.calls.function import compile
from graphc.llm.decoder import BLOCK, Decoder
from graphc.tape.grad_mode import no_grad
from graphc.tensors.creation import tensor
from graphc.tensors.tensor import Tensor

__all__ = ["Generator"]


class Generator:
    """Generates the most likely tokens after prompts. Programs are compiled on their first call.

    Example:
        >>> import graphc as gc
        >>> model = gc.llm.load("SmolLM2-135M-Instruct.Q4_1.gguf")  # doctest: +SKIP
        >>> list(gc.llm.Generator(model).greedy([504, 3575, 282, 4649, 314], 2))  # doctest: +SKIP
        [7042, 30]
    """

    def __init__(self, decoder: Decoder):
        self.decoder = decoder
        places = decoder.places

        def likeliest(tokens: Tensor, position: int) -> Tensor:
            return decoder.step(tokens, position).argmax(-1, keepdim=True)

        count, start = Dim("count", 1, BLOCK), Dim("position", 0, places - BLOCK)
        self._read = compile(likeliest, dims={"tokens": (None, count), "position": start})
        self._next = compile(likeliest, dims={"position": Dim("position", 0, places - 1, hint=places // 4)})

    def greedy(self, prompt: Sequence[int], count: int, stops: Collection[int] = ()) -> Iterator[int]:
        """Yield up to ``count`` tokens, each the most likely one after those before it; one of ``stops`` ends them and
        is not yielded.

        Raises ArgumentError for an empty prompt, tokens outside of the vocabulary, and more tokens than the caches
        hold.
        """
        tokens = np.asarray(prompt, np.int64).reshape(1, -1)
        vocabulary, places = self.decoder.config.vocabulary, self.decoder.places
        if not tokens.size or tokens.min() < 0 or tokens.max() >= vocabulary:
            raise ArgumentError(f"a prompt is one or more tokens from 0 to {vocabulary - 1}")
        if tokens.size + count > places:
            raise ArgumentError(
                f"{tokens.size} tokens of the prompt and {count} new ones exceed the {places} places of the caches",
                remedy=f"load the model with places={tokens.size + count}",
            )
        return self._generate(tokens, count, stops)

    def _generate(self, prompt: np.ndarray, count: int, stops: Collection[int]) -> Iterator[int]:
        with no_grad():
            token = tensor(prompt)
            for position in range(0, prompt.size, BLOCK):
                token = self._read(tensor(prompt[:, position : position + BLOCK].copy()), position)
        for position in range(prompt.size, prompt.size + count):
            number = int(token)
            if number in stops:
                return
            yield number
            if position + 1 < prompt.size + count:
                with no_grad():
                    token = self._next(token, position)
