"""Programs of a model file that compute the next token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.base.lazy import deferred
from graphc.base.sizes.named_dims import Dim
from graphc.llm.sampling import Sampling, choose
from graphc.llm.token_programs import CACHES, digest_of
from graphc.models.model_file import LoadedModel
from graphc.tape.grad_mode import no_grad
from graphc.tensors.creation import tensor
from graphc.tensors.tensor import Tensor

# The most likely tokens need no program besides those of the file.
compile = deferred("graphc.calls.function:compile")


class StoredPrograms:
    """Entries ``prefill`` and ``step`` of a model file, see ``Decoder.entries``; sampling is a compiled function."""

    rows = 1

    def __init__(self, model: LoadedModel):
        self.model = model
        if not _is_decoder(model):
            raise ArgumentError(
                f"{model.name} has no entries prefill and step of one text", remedy="pass a file of a language model"
            )
        limits = {dim.name: dim.high for dim in model.entries["step"].spec.dims}
        self.places = limits["position"] + 1
        self.vocabulary = int(model.entries["step"].outputs[0].shape[1])
        self._cache = next(iter(self.caches().values()))
        self._history = np.zeros(self.places, np.int64)
        self._choose: Any = None

    def caches(self) -> dict[str, Tensor]:
        states = ((path.split("."), tensor) for path, tensor in self.model._state.tensors.items())
        return {f"{parts[1]}.{parts[-1]}": tensor for parts, tensor in states if parts[-1] in CACHES}

    def version(self) -> int:
        return self._cache._version

    def write_history(self, tokens: np.ndarray) -> None:
        self._history[: tokens.size] = tokens

    def next_token(self, tokens: Sequence[int], position: int, row: int, sampling: Sampling) -> int:
        end = position + len(tokens)
        self._history[position:end] = tokens
        entry = self.model.entries["prefill" if len(tokens) > 1 else "step"]
        outputs = entry(np.array([tokens], np.int32), position)
        if sampling.takes_likeliest:
            return int(outputs["likeliest"][0])
        if self._choose is None:
            self._choose = compile(choose, dims={"history": (None, Dim("length", 1, self.places))})
        history, draws = tensor(self._history[None, :end]), sampling.temperature > 0
        with no_grad():
            logits = tensor(outputs["logits"])
            return int(self._choose(logits, history, draws, sampling.settings, sampling.random_state(end)))

    def next_tokens(self, tokens: Sequence[int], positions: Sequence[int], samplings: Sequence[Sampling]) -> list[int]:
        return [self.next_token(tokens, positions[0], 0, samplings[0])]

    def digest(self) -> str:
        state = self.model.state_dict()
        tables = {name: state.pop(name) for name in [*state] if name.startswith(("cos", "sin"))}
        weights = {name: value for name, value in state.items() if name.split(".")[-1] not in CACHES}
        return digest_of(weights, tables)


def _is_decoder(model: LoadedModel) -> bool:
    """Check whether a model has the entries of ``Decoder.entries`` for one text."""
    specs = [model.entries[name].spec for name in ("prefill", "step") if name in model.entries]
    inputs = [[(x.dtype, len(x.shape), x.shape[:1]) for x in spec.inputs] for spec in specs]
    outputs = [[x.dtype for x in spec.outputs] for spec in specs]
    dims = [{dim.name for dim in spec.dims} for spec in specs]
    return (
        inputs == [[("i32", 2, (1,)), ("i64", 0, ())]] * 2
        and outputs == [["f32", "i32"]] * 2
        and dims == [{"count", "position"}, {"position"}]
    )
