"""Programs of a decoder that compute the next token, each compiled on its first call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphc.base.dtypes import int64
from graphc.base.sizes.named_dims import Dim
from graphc.calls.function import compile
from graphc.llm.decoder import Decoder
from graphc.llm.sampling import Sampling, choose
from graphc.llm.token_programs import BLOCK, CACHES, digest_of
from graphc.tape.grad_mode import no_grad
from graphc.tensors.creation import arange, tensor, zeros
from graphc.tensors.free_functions import cat, stack, where
from graphc.tensors.tensor import Tensor


class CompiledPrograms:
    """Programs of a decoder. Sampling is part of them."""

    def __init__(self, decoder: Decoder):
        self.decoder = decoder
        self.places, self.rows, self.vocabulary = decoder.places, decoder.rows, decoder.config.vocabulary
        self._history = history = zeros(decoder.rows, decoder.places, dtype=int64)

        def step(tokens: Tensor, position: int, row: int, draws: bool, settings: Tensor, random: Tensor) -> Tensor:
            end = position + tokens.shape[1]
            history[row : row + 1, position:end] = tokens
            text = history[row : row + 1, :end]
            return choose(decoder.step(tokens, position, row), text, draws, settings, random)

        def step_rows(
            tokens: Tensor, positions: Tensor, end: int, draws: bool, settings: Tensor, random: Tensor
        ) -> Tensor:
            history[arange(decoder.rows), positions] = tokens[:, 0]
            logits = decoder.step_rows(tokens, positions, end)
            # A row shorter than the longest one repeats its first token, which changes no penalty.
            text = where(arange(end) <= positions[:, None], history[:, :end], history[:, :1])
            parts = (x.split(1) for x in (logits, text))
            rows = zip(*parts, settings, random, strict=True)
            return cat([choose(x, tokens, draws, *arguments) for x, tokens, *arguments in rows])

        places = decoder.places
        count, start = Dim("count", 1, BLOCK), Dim("position", 0, places - BLOCK)
        row = {"row": Dim("row", 0, decoder.rows - 1)} if decoder.rows > 1 else {}
        self._read = compile(step, dims={"tokens": (None, count), "position": start, **row})
        self._next = compile(step, dims={"position": Dim("position", 0, places - 1, hint=places // 4), **row})
        self._next_rows = compile(step_rows, dims={"end": Dim("end", 1, places, hint=places // 4)})

    def caches(self) -> dict[str, Tensor]:
        layers = enumerate(self.decoder.layers)
        return {f"{i}.{name}": getattr(layer.self_attn, name) for i, layer in layers for name in CACHES}

    def version(self) -> int:
        return self.decoder.layers[0].self_attn.keys._version

    def write_history(self, tokens: np.ndarray) -> None:
        self._history[0, : tokens.size] = tensor(tokens)

    def next_token(self, tokens: Sequence[int], position: int, row: int, sampling: Sampling) -> int:
        program = self._read if len(tokens) > 1 else self._next
        random, draws = sampling.random_state(position + len(tokens)), sampling.temperature > 0
        with no_grad():
            block = tensor(np.array([tokens], np.int64))
            return int(program(block, position, row, draws, sampling.settings, random))

    def next_tokens(self, tokens: Sequence[int], positions: Sequence[int], samplings: Sequence[Sampling]) -> list[int]:
        if self.rows == 1:  # The program of one text is compiled already.
            return [self.next_token(tokens, positions[0], 0, samplings[0])]
        draws = any(sampling.temperature > 0 for sampling in samplings)
        samplings = [sampling.drawn() for sampling in samplings] if draws else samplings
        last = tensor(np.array(tokens, np.int64)[:, None])
        settings = stack([sampling.settings for sampling in samplings])
        random = stack([s.random_state(p + 1) for s, p in zip(samplings, positions, strict=True)])
        with no_grad():
            places = tensor(np.array(positions, np.int64))
            result = self._next_rows(last, places, max(positions) + 1, draws, settings, random)
        return result.numpy()[:, 0].tolist()

    def digest(self) -> str:
        tables = [f"{name}{i}" for i in range(len(self.decoder.rotaries)) for name in ("cos", "sin")]
        return digest_of(self.decoder.state_dict(), {name: getattr(self.decoder, name) for name in tables})
