"""Parameters and buffers of PyTorch that a program reads: what is prepared of them, and when it is prepared again."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.runtime.call import Executable

LIVE, FROZEN = "live", "frozen"


class Weights:
    """The arrays that a program takes beside its inputs."""

    def __init__(self, first: Executable | None, sources: Sequence[Any], watch: str):
        """``first`` prepares arrays of weights. Of each array of the program ``sources`` says what it is: an array, the
        path of an argument, or the number of a result of ``first``. ``watch`` is ``live`` (a write of any kind is
        seen: contents are compared in each call) or ``frozen`` (prepared once)."""
        self._first = first
        self._sources = list(sources)
        self._watch = watch
        self._taken = [int(spec.path) for spec in first.inputs] if first else []
        self._plain = [int(s) for s in sources if isinstance(s, str)]
        self._key: Any = None
        self._made: list[np.ndarray] = []
        self._bound: tuple[np.ndarray, ...] | None = None
        self._places: list[int] = []
        self._kept: list[Any] = []

    def arrays(self, args: Sequence[Any]) -> tuple[np.ndarray, ...]:
        """What the program takes for these arguments; the same tuple while nothing has changed."""
        if self._bound is not None and self._watch == FROZEN:
            return self._bound
        plain = [args[i].data_ptr() for i in self._plain]
        key = [self._key_of(args[i]) for i in self._taken]
        if self._bound is None or plain != self._places or key != self._key:
            if self._bound is None or key != self._key:
                given = [args[i].detach().numpy() for i in self._taken]
                self._made = self._first.run(given) if self._first else []
                self._key = key
            self._places = plain
            self._bound = tuple([self._array(s, args) for s in self._sources])
        return self._bound

    def _array(self, source: Any, args: Sequence[Any]) -> np.ndarray:
        if isinstance(source, str):
            return args[int(source)].detach().numpy()
        return self._made[source] if isinstance(source, int) else source

    @staticmethod
    def _key_of(tensor: Any) -> Any:
        array = np.ascontiguousarray(tensor.detach().numpy())
        return tensor.data_ptr(), zlib.crc32(array.reshape(-1).view(np.uint8).data)
