"""Times at which a language model generates its tokens."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from graphc.cli.fields import Field


class Timed:
    """Iterator over tokens that records them and the times at which they came."""

    def __init__(self, tokens: Iterable[int]):
        self._iterator, self._start = iter(tokens), time.perf_counter()
        self.tokens: list[int] = []
        self.times: list[float] = []

    def __iter__(self) -> Iterator[int]:
        for token in self._iterator:
            self.times.append(time.perf_counter() - self._start)
            self.tokens.append(token)
            yield token

    def seconds(self) -> dict[str, float]:
        """Return the seconds until the first token, and of the tokens after it."""
        times = self.times or [time.perf_counter() - self._start]
        return {"prompt_seconds": times[0], "tokens_seconds": times[-1] - times[0]}

    def measure(self) -> tuple[float, float]:
        """Take all tokens, at least two; return the seconds until the first one, and of each token after it."""
        for _ in self:
            pass
        seconds = self.seconds()
        return seconds["prompt_seconds"], seconds["tokens_seconds"] / (len(self.times) - 1)


SECONDS = (
    Field("prompt_seconds", "number", "time until the first token, compiling included", "s"),
    Field("tokens_seconds", "number", "time of the tokens after it, compiling included", "s"),
)
