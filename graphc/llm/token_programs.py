"""Interface of programs that compute the next token from the caches of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Protocol

import numpy as np

from graphc.llm.sampling import Sampling
from graphc.tensors.tensor import Tensor

BLOCK = 64
"""Most tokens of a prompt that a call reads; the capacity of caches is a multiple of it."""
CACHES = ("keys", "values")
"""Names of the caches of a layer."""
_DIGESTED = 1024
"""Elements of each weight that identify a model."""


class TokenPrograms(Protocol):
    """Programs over the caches of one model."""

    places: int
    """Capacity of the caches in tokens."""
    rows: int
    """Number of texts in the caches."""
    vocabulary: int

    def caches(self) -> dict[str, Tensor]:
        """Return the caches f32[rows, heads, places, size] by name, such as ``0.keys``."""
        ...

    def version(self) -> int:
        """Return a number that every write to the caches changes."""
        ...

    def write_history(self, tokens: np.ndarray) -> None:
        """Set the first tokens of the first row, whose keys and values the caches hold."""
        ...

    def next_token(self, tokens: Sequence[int], position: int, row: int, sampling: Sampling) -> int:
        """Return the token after up to ``BLOCK`` tokens of a row, which stand from ``position`` on.

        More than one token leave room for ``BLOCK`` of them in the caches.
        """
        ...

    def next_tokens(self, tokens: Sequence[int], positions: Sequence[int], samplings: Sequence[Sampling]) -> list[int]:
        """Return the token after the one of each row, which stands at its position."""
        ...

    def digest(self) -> str:
        """Return a digest of the first elements of each weight and of the angles of positions."""
        ...


def digest_of(weights: Mapping[str, Tensor], tables: Mapping[str, Tensor]) -> str:
    """Return a digest of the first elements of weights, and of the angles of one position in ``tables``."""
    # The second rows of the tables are the angles of one position, in tables for any number of them.
    parts = {**weights, **{name: table[1] for name, table in tables.items()}}
    digest = sha256()
    for name, part in sorted(parts.items()):
        first = part.detach().flatten()[:_DIGESTED].numpy()
        digest.update(f"{name}{list(part.shape)}".encode() + first.tobytes())
    return digest.hexdigest()
