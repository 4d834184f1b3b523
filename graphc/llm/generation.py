"""Generation of tokens: a compiled program reads the prompt in blocks, another one computes a token per call."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.dtypes import float32, int64
from graphc.base.errors import ArgumentError, ArtifactError
from graphc.base.lazy import deferred
from graphc.files.container import is_container
from graphc.llm.sampling import Sampling
from graphc.llm.stored_programs import StoredPrograms
from graphc.llm.token_programs import BLOCK, TokenPrograms
from graphc.models.cached_model import cached_model
from graphc.models.model_file import LoadedModel
from graphc.models.model_file import load as load_model
from graphc.tape.grad_mode import no_grad
from graphc.tensors.creation import tensor
from graphc.tensors.tensor import Tensor

if TYPE_CHECKING:
    from graphc.llm.decoder import Decoder
    from graphc.models.model_entries import Entry

# A process that finds the programs of a model in the cache imports neither modules nor the compiler.
CompiledPrograms = deferred("graphc.llm.compiled_programs:CompiledPrograms")
load = deferred("graphc.llm.loading:load")
load_state = deferred("graphc.checkpoints.state_file:load_state")
save_state = deferred("graphc.checkpoints.state_file:save_state")

__all__ = ["Generator"]

_GREEDY = Sampling()
_KIND = "graphc prompt cache"
"""Key of the state in a file of ``Generator.save``."""


class Generator:
    """Generates tokens after prompts, by a Decoder, whose programs are compiled on their first call, or by a model of
    ``gc.load`` with the entries of one.

    The caches keep what they hold: a prompt that begins as the text before reads only the tokens after the common
    beginning. A write to the caches by others, such as ``Decoder.step``, makes the next prompt start afresh.

    Example:
        >>> import graphc as gc
        >>> model = gc.llm.load("SmolLM2-135M-Instruct.Q4_1.gguf")  # doctest: +SKIP
        >>> list(gc.llm.Generator(model).greedy([504, 3575, 282, 4649, 314], 2))  # doctest: +SKIP
        [7042, 30]
    """

    def __init__(self, model: Decoder | LoadedModel):
        stored = isinstance(model, LoadedModel)
        self.programs: TokenPrograms = StoredPrograms(model) if stored else CompiledPrograms(model)
        self.places = self.programs.places
        """Most tokens of a text: the capacity of the caches."""
        self._held: list[int] = []
        """Tokens whose keys and values the first row of the caches holds."""
        self._version = self.programs.version()

    @classmethod
    def open(cls, path: str | os.PathLike[str], places: int | None = None, trust: bool = False) -> Generator:
        """Return a generator for a file; in further processes it starts without reading and compiling the model.

        The first process compiles the entries of a GGUF file or folder and stores them in the cache, as a model file of
        their size. Others map that file. Without a cache, and for models larger than half of ``GRAPHC_CACHE_SIZE``,
        this is ``Generator(gc.llm.load(path, places))``.

        Args:
            path: a GGUF file, a folder as for ``gc.llm.load``, or a ``.gcm`` file with the entries of a decoder.
            places: capacity of the caches in tokens, as for ``gc.llm.load``; a ``.gcm`` file has its own.
            trust: run the native code in a ``.gcm`` file, as for ``gc.load``.

        Raises:
            ArgumentError: a ``.gcm`` file of another model, or one with fewer places.
            Others as ``gc.llm.load`` and ``gc.load``.

        Example:
            >>> import graphc as gc
            >>> generator = gc.llm.Generator.open("SmolLM2-135M-Instruct.Q4_1.gguf", places=512)  # doctest: +SKIP
            >>> list(generator.greedy([504, 3575, 282, 4649, 314], 2))  # doctest: +SKIP
            [7042, 30]
        """
        if not is_container(path):
            return cls(_open_cached(path, places))
        generator = cls(load_model(path, trust))
        if places is not None and places > generator.places:
            raise ArgumentError(
                f"{os.fspath(path)} has caches of {generator.places} places, {places} are wanted",
                remedy=f"compile it with --places {places}",
            )
        return generator

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
        waiting, rows = deque(texts if count > 0 else ()), [BatchText.ended()] * self.programs.rows
        while True:
            for row in range(len(rows)):
                while waiting and not rows[row].active:
                    rows[row] = waiting.popleft()
                    rows[row].add(self._read_blocks(rows[row].tokens, [], rows[row].sampling, row))
            if not any(text.active for text in rows):
                return [text.new for text in texts]
            for text, token in zip(rows, self._call_rows(rows), strict=True):
                text.add(token)

    def _checked(self, prompt: Sequence[int], count: int) -> list[int]:
        """Return the tokens of a prompt that the caches can hold with ``count`` more."""
        tokens = np.asarray(prompt, np.int64).reshape(-1)
        vocabulary, places = self.programs.vocabulary, self.places
        if not tokens.size or tokens.min() < 0 or tokens.max() >= vocabulary:
            raise ArgumentError(f"a prompt is one or more tokens from 0 to {vocabulary - 1}")
        if tokens.size + count > places:
            raise ArgumentError(
                f"{tokens.size} tokens of the prompt and {count} new ones exceed the {places} places of the caches",
                remedy=f"load or compile the model with places={tokens.size + count}",
            )
        return tokens.tolist()

    def reset(self) -> None:
        """Forget the text in the caches: the next prompt is read from its first token on."""
        self._held = []

    def held(self) -> list[int]:
        """Return the tokens whose keys and values the caches hold."""
        return [*self._held] if self._version == self.programs.version() else []

    def common(self, tokens: Sequence[int]) -> int:
        """Return how many tokens at the beginning the caches hold."""
        return len([*takewhile(lambda pair: pair[0] == pair[1], zip(self.held(), tokens, strict=False))])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the text in the caches, with its keys and values, to a ``.safetensors`` or ``.npz`` file.

        Raises ArgumentError for another suffix; OSError.
        """
        tokens = self.held()
        caches = {name: cache[:1, :, : len(tokens)] for name, cache in self.programs.caches().items()}
        state = {"tokens": tensor(np.array(tokens, np.int64)), "caches": caches, "model": self.programs.digest()}
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
        if state["model"] != self.programs.digest():
            raise ArtifactError(f"{source}: the caches of another model", remedy="read the prompt by this model")
        tokens, vocabulary = _tokens(source, state["tokens"]), self.programs.vocabulary
        caches, stored = self.programs.caches(), state["caches"]
        shapes = {name: (1, cache.shape[1], tokens.size, cache.shape[3]) for name, cache in caches.items()}
        if not _has_shapes(stored, shapes) or np.any((tokens < 0) | (tokens >= vocabulary)):
            raise ArtifactError(f"{source}: tokens, keys or values are damaged")
        with no_grad():
            count = min(tokens.size, self.places)
            self.programs.write_history(tokens[:count])
            for name, cache in caches.items():
                cache[:1, :, :count] = stored[name][:, :, :count]
        self._held, self._version = tokens[:count].tolist(), self.programs.version()

    def _generate(self, prompt: list[int], count: int, stops: Collection[int], sampling: Sampling) -> Iterator[int]:
        self._held = held = prompt[: min(self.common(prompt), len(prompt) - 1)]
        token = self._read_blocks(prompt, held, sampling, 0)
        for position in range(len(prompt), len(prompt) + count):
            if token in stops:
                return
            yield token
            if position + 1 < len(prompt) + count:
                if held is not self._held or self._version != self.programs.version():
                    raise ArgumentError(
                        "the caches hold another text now", remedy="finish one text before the next, or load two models"
                    )
                following = self._next_token([token], position, 0, sampling)
                held.append(token)
                token = following

    def _read_blocks(self, tokens: list[int], held: list[int], sampling: Sampling, row: int) -> int:
        """Read the tokens after those that a row of the caches holds; append them, and return the first new token."""
        token = 0
        while len(held) < len(tokens):
            # A block that would reach over the end of the caches begins with tokens that they hold already.
            position = min(len(held), self.places - BLOCK)
            del held[position:]
            block = tokens[position : position + BLOCK]
            token = self._next_token(block, position, row, sampling)
            held += block
        return token

    def _next_token(self, tokens: Sequence[int], position: int, row: int, sampling: Sampling) -> int:
        token = self.programs.next_token(tokens, position, row, sampling)
        self._version = self.programs.version()
        return token

    def _call_rows(self, texts: list[BatchText]) -> list[int]:
        """Return the next token of each row. Ignore the tokens of rows whose texts have ended."""
        last = [(text.new or [0])[-1] if text.active else 0 for text in texts]
        positions = [text.position if text.active else 0 for text in texts]
        samplings = [text.sampling if text.active else _GREEDY for text in texts]
        tokens = self.programs.next_tokens(last, positions, samplings)
        self._version = self.programs.version()
        return tokens


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


def _open_cached(path: str | os.PathLike[str], places: int | None) -> Decoder | LoadedModel:
    """Return the compiled entries of a language model from the cache; the decoder where the cache cannot hold them."""
    decoders: list[Decoder] = []

    def entries() -> Mapping[str, Entry]:
        decoders.append(load(path, places))
        return decoders[0].entries() if decoders[0].places > BLOCK else {}

    model = cached_model(path, [f"language model, {places} places"], entries)
    return model or (decoders[0] if decoders else load(path, places))


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
