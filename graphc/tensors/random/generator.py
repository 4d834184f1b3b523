"""Random state: a seed and a step, and the number of the stream of each random operation."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from graphc.base import module_path
from graphc.base.errors import ArgumentError
from graphc.base.public import reduced
from graphc.ops import dispatch
from graphc.ops.pointwise import elementwise as ew
from graphc.tape.grad_mode import no_grad
from graphc.tensors.journal import USED, note_write
from graphc.tensors.tensor_base import bump, expose, front

PATH = "graphc.random"
"""Path of the default generator's state among the state arguments of a graph."""
DRAWS = "draws"
"""With a generator, the key of a scope's memory for the number of draws of each module."""
UNCERTAIN = "uncertain"
"""Key of a scope's memory: set after steps that may or may not have run, and so may have advanced its generators."""
_STEP = np.array([0, 1], np.int64)
_STEP.flags.writeable = False


class Generator:
    """Generator of random numbers that depend only on its seed, its step and the path of the drawing module.

    The step counts outermost module calls that draw, and draws outside of any such call.

    Example:
        >>> import graphc as gc
        >>> first, second = gc.Generator(), gc.Generator()
        >>> gc.equal(gc.rand(3, generator=first.manual_seed(1)), gc.rand(3, generator=second.manual_seed(1)))
        True
    """

    def __init__(self, device: Any = "cpu"):
        if str(device) != "cpu":
            raise ArgumentError(f"a Generator must be on the cpu, not on {device}")
        self._initial = np.array([_FIRST_SEED, 0], np.int64)
        self._state: Any = None

    @property
    def state(self) -> Any:
        """i64[2]: seed and step, a tensor that graphs read and write as state."""
        if self._state is None:
            # NOTE: a trace may be the first to draw, but the state belongs to the world outside of it.
            self._state = dispatch.default().constant(self._initial)
            self._state._capture_path = PATH
            expose(self._state)
        return self._state

    def __repr__(self) -> str:
        return f"Generator(seed={self.initial_seed()}, step={int(front().values(self.state, 'repr()')[1])})"

    def manual_seed(self, seed: int) -> Generator:
        """Restart from a seed (any int of up to 64 bits), and return the generator."""
        if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool):
            raise ArgumentError(f"manual_seed: the seed must be an int, got {seed!r}")
        if not -(1 << 63) <= seed < 1 << 64:
            raise ArgumentError(f"manual_seed: the seed must fit into 64 bits, got {seed}")
        front().values(self.state, "seeding")[:] = np.array([int(seed) & _WORD, 0], np.uint64).view(np.int64)
        return self

    def seed(self) -> int:
        """Restart from a seed of the operating system, and return the seed."""
        seed = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """Return the most recent seed."""
        return int(front().values(self.state, "initial_seed()")[0]) & _WORD

    def get_state(self) -> Any:
        """Return a copy of (seed, step)."""
        return front().constant(front().values(self.state, "get_state()").copy())

    def set_state(self, state: Any) -> Generator:
        """Continue from a state of ``get_state``."""
        array = np.asarray(state)
        if array.shape != (2,) or array.dtype != np.int64:
            raise ArgumentError(f"set_state: the state must be i64[2], got {array.dtype}{list(array.shape)}")
        front().values(self.state, "set_state()")[:] = array
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduced(super().__reduce_ex__(max(2, protocol)))

    def __getstate__(self) -> list[int]:
        return front().values(self.state, "pickling").tolist()

    def __setstate__(self, state: list[int]) -> None:
        self._initial = np.array(state, np.int64)
        self._state = None

    def draw(self) -> tuple[Any, int]:
        """Return the state and stream number for one random operation; advance the step if a new one starts.

        Inside of a module call all draws share one step. Their stream depends on the path of the innermost module and
        its number of draws. Elsewhere every draw is a step of its own. Each drawing step of a ``scan``, branch of
        ``cond`` and step of ``while_loop`` is a step too; after these the next draw starts a new one, whatever has run.
        """
        if USED[0]:  # a rerun block draws again, even from a step that others started
            note_write(self.state._data, self.state._counter)
        scope = module_path.scope()
        if scope is None:
            self._advance()
            return self.state, stream_of("", 0)
        counts = scope.memory.get((self, DRAWS))
        if not counts:
            counts = scope.memory[(self, DRAWS)] = {}
            self._advance()
        path = module_path.current_path()
        number = counts.get(path, 0)
        counts[path] = number + 1
        return self.state, stream_of(path, number)

    def _advance(self) -> None:
        state = self.state
        if dispatch.active() is None and state._data.__class__ is np.ndarray:
            # NOTE: this is the assignment below, without the overhead of an operation.
            np.add(state._data, _STEP, out=state._data)
            bump(state)
            return
        with no_grad():
            front().assign(state, ew.add(state, front().constant(_STEP)))


def drawn(scope: module_path.Scope) -> dict[Any, dict[str, int]]:
    """Return the number of draws of each module of a scope, by generator."""
    return {key: value for key, value in scope.memory.items() if isinstance(key, tuple) and key[1] is DRAWS}


@contextmanager
def own_step(uncertain: bool = False) -> Iterator[None]:
    """Make the draws of the block one step of a loop: each generator advances at its first draw, and at the next after
    it.

    ``uncertain`` means that a value decides whether the block runs; then generators advance at the next draw anyway.
    """
    scope = module_path.scope()
    if scope is None:
        with module_path.open_scope():
            yield
        return
    before = drawn(scope)
    fresh: dict[Any, dict[str, int]] = {key: {} for key in before}
    scope.memory.update(fresh)
    try:
        yield
    finally:
        for key, counts in drawn(scope).items():
            unused = not uncertain and not counts and counts is fresh.get(key)
            scope.memory[key] = before[key] if unused else {}
        if uncertain:
            scope.memory[UNCERTAIN] = True


def stream_of(path: str, occurrence: int) -> int:
    """Return the number of the stream for the ``occurrence``-th draw of the module at ``path`` in one step."""
    return zlib.crc32(f"{path}:{occurrence}".encode())


_WORD = (1 << 64) - 1
_FIRST_SEED = 0x5EED
default_generator = Generator()
"""The generator of random functions without a ``generator=``."""


def manual_seed(seed: int) -> Generator:
    """Seed the default generator and return it.

    Example:
        >>> import graphc as gc
        >>> generator = gc.manual_seed(7)
        >>> first = gc.rand(3)
        >>> generator = gc.manual_seed(7)
        >>> gc.equal(first, gc.rand(3))
        True
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seed the default generator from the operating system, and return the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """Return the seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """Return a copy of the default generator's state."""
    return default_generator.get_state()


def set_rng_state(state: Any) -> None:
    """Set the default generator's state."""
    default_generator.set_state(state)


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **_: Any) -> Iterator[None]:
    """Restore the default generator's state after the block. All ``devices`` share it; without ``enabled`` nothing
    happens."""
    before = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if before is not None:
            set_rng_state(before)
