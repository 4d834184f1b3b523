"""Generation of tokens: a compiled program reads the prompt in blocks, another one computes a token per call."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from hashlib import sha256
from itertools import takewhile
from typing import Any

import numpy as np

from graphc.base.dtypes import float32, int64
from graphc.base.errors import ArgumentError, ArtifactError
from graphc.base.sizes.named_dims import Dim
from graphc.calls.function import compile
from graphc.checkpoints.state_file import load_state, save_state
from graphc.llm.decoder import BLOCK, Decoder
from graphc.llm.sampling import Sampling, choose
from graphc.tape.grad_mode import no_grad
from graphc.tensors.creation import arange, tensor, zeros
from graphc.tensors.free_functions import cat, stack, where
from graphc.tensors.tensor import Tensor

__all__ = ["Generator"]

_GREEDY = Sampling()
_KIND = "graphc prompt cache"
"""Key of the state in a file of ``Generator.save``."""
_DIGESTED = 1024
"""Elements of each weight that identify a model."""


class Generator:
    """Generates tokens after prompts. Programs are compiled on their first call.

    The caches keep what they hold: a prompt that begins as the text before reads only the tokens after the common
    beginning. A write to the caches by others, such as ``Decoder.step``, makes the next prompt start afresh.

    Example:
        >>> import graphc as gc
        >>> model = gc.llm.load("SmolLM2-135M-Instruct.Q4_1.gguf")  # doctest: +SKIP
        >>> list(gc.llm.Generator(model).greedy([504, 3575, 282, 4649, 314], 2))  # doctest: +SKIP
        [7042, 30]
    """

    def __init__(self, decoder: Decoder):
        self.decoder = decoder
        places = decoder.places
        self._history = history = zeros(decoder.rows, places, dtype=int64)
        self._held: list[int] = []
        """Tokens whose keys and values the first row of the caches holds."""
        self._version = self._cache_version()

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

        count, start = Dim("count", 1, BLOCK), Dim("position", 0, places - BLOCK)
        row = {"row": Dim("row", 0, decoder.rows - 1)} if decoder.rows > 1 else {}
        self._read = compile(step, dims={"tokens": (None, count), "position": start, **row})
        self._next = compile(step, dims={"position": Dim("position", 0, places - 1, hint=places // 4)})
        self._next_rows = compile(step_rows, dims={"end": Dim("end", 1, places, hint=places // 4)})

    def _cache_version(self) -> int:
        return self.decoder.layers[0].self_attn.keys._version

    def greedy(self, prompt: Sequence[int], count: int, stops: Collection[int] = ()) -> Iterator[int]:
        """Yield up to ``count`` tokens, each the most likely one after those before it; see ``generate``."""
        return self.generate(prompt, count, stops)

    def generate(
        self, prompt: Sequence[int], count: int, stops: Collection[int] = (), sampling: Sampling = _GREEDY
    ) -> Iterator[int]:
        """Yield up to ``count`` tokens after a prompt; one of ``stops`` ends them and is not yielded.

        Raises ArgumentError for an empty prompt, tokens outside of the vocabulary, and more tokens than the caches
        hold; from the iterator, when another text has used the caches since its last token.
        """
        return self._generate(self._checked(prompt, count), count, stops, sampling)

    def generate_batch(
        self,
        prompts: Sequence[Sequence[int]],
        count: int,
        stops: Collection[int] = (),
        sampling: Sampling | Sequence[Sampling] = _GREEDY,
    ) -> list[list[int]]:
        """Return, for each prompt, the tokens that ``generate`` yields.

        A compiled program computes a token of each row of the caches, whose number is ``rows`` of ``gc.llm.load``. When
        a text ends, its row takes the next prompt. ``sampling`` is one for all prompts, or one for each.

        Raises ArgumentError as ``generate``, and for another number of samplings than prompts.

        Example:
            >>> import graphc as gc
            >>> model = gc.llm.load("SmolLM2-135M-Instruct.Q4_1.gguf", rows=2)  # doctest: +SKIP
            >>> prompts = [[504, 3575, 282, 4649, 314], [504, 3575, 282, 7042, 314]]  # doctest: +SKIP
            >>> len(gc.llm.Generator(model).generate_batch(prompts, 8))  # doctest: +SKIP
            2
        """
        samplings = [sampling] * len(prompts) if isinstance(sampling, Sampling) else [*sampling]
        if len(samplings) != len(prompts):
            raise ArgumentError(
                f"generate_batch: {len(samplings)} samplings for {len(prompts)} prompts",
                remedy="pass one sampling, or one for each prompt",
            )
        checked = [self._checked(prompt, count) for prompt in prompts]
        texts = [BatchText(tokens, count, stops, s) for tokens, s in zip(checked, samplings, strict=True)]
        self.reset()
        waiting, rows = deque(texts if count > 0 else ()), [BatchText.ended()] * self.decoder.rows
        while True:
            for row in range(len(rows)):
                while waiting and not rows[row].active:
                    rows[row] = waiting.popleft()
                    rows[row].add(int(self._read_blocks(rows[row].tokens, [], rows[row].sampling, row)))
            if not any(text.active for text in rows):
                return [text.new for text in texts]
            for text, token in zip(rows, self._call_rows(rows), strict=True):
                text.add(token)

    def _checked(self, prompt: Sequence[int], count: int) -> list[int]:
        """Return the tokens of a prompt that the caches can hold with ``count`` more."""
        tokens = np.asarray(prompt, np.int64).reshape(-1)
        vocabulary, places = self.decoder.config.vocabulary, self.decoder.places
        if not tokens.size or tokens.min() < 0 or tokens.max() >= vocabulary:
            raise ArgumentError(f"a prompt is one or more tokens from 0 to {vocabulary - 1}")
        if tokens.size + count > places:
            raise ArgumentError(
                f"{tokens.size} tokens of the prompt and {count} new ones exceed the {places} places of the caches",
                remedy=f"load the model with places={tokens.size + count}",
            )
        return tokens.tolist()

    def reset(self) -> None:
        """Forget the text in the caches: the next prompt is read from its first token on."""
        self._held = []

    def held(self) -> list[int]:
        """Return the tokens whose keys and values the caches hold."""
        return [*self._held] if self._version == self._cache_version() else []

    def common(self, tokens: Sequence[int]) -> int:
        """Return how many tokens at the beginning the caches hold."""
        return len([*takewhile(lambda pair: pair[0] == pair[1], zip(self.held(), tokens, strict=False))])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the text in the caches, with its keys and values, to a ``.safetensors`` or ``.npz`` file.

        Raises ArgumentError for another suffix; OSError.
        """
        tokens = self.held()
        caches = {name: cache[:1, :, : len(tokens)] for name, cache in self._caches().items()}
        state = {"tokens": tensor(np.array(tokens, np.int64)), "caches": caches, "model": self._digest()}
        save_state({_KIND: state}, path)

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Read a file of ``save``, as far as the caches hold it: a prompt that begins as its text reads only the tokens
        after it.

        Raises ArtifactError for a damaged file, a file of another kind and one of another model; OSError.
        """
        source, tree = os.fspath(path), load_state(path)
        state = tree.get(_KIND) if isinstance(tree, dict) else None
        if not isinstance(state, dict) or state.keys() != {"tokens", "caches", "model"}:
            raise ArtifactError(f"{source}: not a file of Generator.save")
        if state["model"] != self._digest():
            raise ArtifactError(f"{source}: the caches of another model", remedy="read the prompt by this model")
        tokens, vocabulary = _tokens(source, state["tokens"]), self.decoder.config.vocabulary
        caches, stored = self._caches(), state["caches"]
        shapes = {name: (1, cache.shape[1], tokens.size, cache.shape[3]) for name, cache in caches.items()}
        if not _has_shapes(stored, shapes) or np.any((tokens < 0) | (tokens >= vocabulary)):
            raise ArtifactError(f"{source}: tokens, keys or values are damaged")
        with no_grad():
            count = min(tokens.size, self.decoder.places)
            self._history[0, :count] = tensor(tokens[:count])
            for name, cache in caches.items():
                cache[:1, :, :count] = stored[name][:, :, :count]
        self._held, self._version = tokens[:count].tolist(), self._cache_version()

    def _caches(self) -> dict[str, Tensor]:
        layers = enumerate(self.decoder.layers)
        return {f"{i}.{name}": getattr(layer.self_attn, name) for i, layer in layers for name in ("keys", "values")}

    def _digest(self) -> str:
        """Return a digest of the configuration and of the first elements of each weight, which differ between models of
        one configuration."""
        digest = sha256(repr(self.decoder.config).encode())
        for name, weight in self.decoder.state_dict().items():
            first = weight.detach().flatten()[:_DIGESTED].numpy()
            digest.update(f"{name}{list(weight.shape)}".encode() + first.tobytes())
        return digest.hexdigest()

    def _generate(self, prompt: list[int], count: int, stops: Collection[int], sampling: Sampling) -> Iterator[int]:
        self._held = held = prompt[: min(self.common(prompt), len(prompt) - 1)]
        token = self._read_blocks(prompt, held, sampling, 0)
        for position in range(len(prompt), len(prompt) + count):
            number = int(token)
            if number in stops:
                return
            yield number
            if position + 1 < len(prompt) + count:
                if held is not self._held or self._version != self._cache_version():
                    raise ArgumentError(
                        "the caches hold another text now", remedy="finish one text before the next, or load two models"
                    )
                token = self._call(self._next, token, position, 0, sampling)
                held.append(number)

    def _read_blocks(self, tokens: list[int], held: list[int], sampling: Sampling, row: int) -> Tensor:
        """Read the tokens after those that a row of the caches holds; append them, and return the first new token."""
        token = tensor([[0]])
        while len(held) < len(tokens):
            # A block that would reach over the end of the caches begins with tokens that they hold already.
            position = min(len(held), self.decoder.places - BLOCK)
            del held[position:]
            block = tokens[position : position + BLOCK]
            token = self._call(self._read, tensor(np.array([block], np.int64)), position, row, sampling)
            held += block
        return token

    def _call(self, program: Any, tokens: Tensor, position: int, row: int, sampling: Sampling) -> Tensor:
        random, draws = sampling.random_state(position + tokens.shape[1]), sampling.temperature > 0
        with no_grad():
            token = program(tokens, position, row, draws, sampling.settings, random)
        self._version = self._cache_version()
        return token

    def _call_rows(self, texts: list[BatchText]) -> list[int]:
        """Return the next token of each row. Ignore the tokens of rows whose texts have ended."""
        last = np.array([[(text.new or [0])[-1] if text.active else 0] for text in texts], np.int64)
        positions = np.array([text.position if text.active else 0 for text in texts], np.int64)
        draws = any(text.active and text.sampling.temperature > 0 for text in texts)
        settings = stack([(text.sampling.drawn() if draws else text.sampling).settings for text in texts])
        random = stack([text.sampling.random_state(int(p) + 1) for text, p in zip(texts, positions, strict=True)])
        with no_grad():
            end = int(positions.max()) + 1
            tokens = self._next_rows(tensor(last), tensor(positions), end, draws, settings, random)
        return tokens.numpy()[:, 0].tolist()


class BatchText:
    """Prompt of a batch, and the tokens after it."""

    def __init__(self, tokens: list[int], count: int, stops: Collection[int], sampling: Sampling):
        self.tokens, self.count, self.stops, self.sampling = tokens, count, stops, sampling
        self.new: list[int] = []
        self.active = count > 0

    @staticmethod
    def ended() -> BatchText:
        """Return an empty text, for a row that has none."""
        return BatchText([], 0, (), _GREEDY)

    @property
    def position(self) -> int:
        """Position of the last token."""
        return len(self.tokens) + len(self.new) - 1

    def add(self, token: int) -> None:
        """Append a token, unless the text has ended or the token ends it."""
        self.active = self.active and token not in self.stops
        if self.active:
            self.new.append(token)
            self.active = len(self.new) < self.count


def _tokens(source: str, value: Any) -> np.ndarray:
    if not isinstance(value, Tensor) or value.ndim != 1 or value.dtype is not int64:
        raise ArtifactError(f"{source}: the tokens are not a vector of i64")
    return value.numpy()


def _has_shapes(stored: Any, shapes: dict[str, tuple[int, ...]]) -> bool:
    """Check that a dictionary holds f32 tensors of these names and shapes."""
    return (
        isinstance(stored, dict)
        and stored.keys() == shapes.keys()
        and all(
            isinstance(value, Tensor) and value.dtype is float32 and tuple(value.shape) == shapes[name]
            for name, value in stored.items()
        )
    )
