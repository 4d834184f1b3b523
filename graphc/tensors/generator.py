"""Random state: a seed and a step, and the number of the stream that each random operation draws from."""

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
from graphc.ops import elementwise as ew
from graphc.tape.grad_mode import no_grad
from graphc.tensors.journal import USED, note_write
from graphc.tensors.tensor_base import bump, expose, front

PATH = "graphc.random"
"""Where the state of the default generator is found among the state arguments of a graph."""
DRAWS = "draws"
"""With a generator, the key under which a scope remembers how often each of its modules has drawn."""
UNCERTAIN = "uncertain"
"""The key under which a scope remembers that what may or may not have run ended steps of its generators."""
_STEP = np.array([0, 1], np.int64)
_STEP.flags.writeable = False


class Generator:
    """Draws random numbers that depend on its seed, its step and the path of the drawing module only.

    The step counts outermost module calls that draw, and draws outside of any such call.
    """

    def __init__(self, device: Any = "cpu"):
        if str(device) != "cpu":
            raise ArgumentError(f"a generator lives on the cpu, not on {device}")
        self._initial = np.array([_FIRST_SEED, 0], np.int64)
        self._state: Any = None

    @property
    def state(self) -> Any:
        """i64[2]: seed and step, a tensor that graphs read and write as state."""
        if self._state is None:
            # NOTE: a trace may be the first to draw; the state belongs to the world outside of it all the same.
            self._state = dispatch.default().constant(self._initial)
            self._state._capture_path = PATH
            expose(self._state)
        return self._state

    def __repr__(self) -> str:
        return f"Generator(seed={self.initial_seed()}, step={int(front().values(self.state, 'repr()')[1])})"

    def manual_seed(self, seed: int) -> Generator:
        """Starts again from a seed (any int of up to 64 bits); returns the generator."""
        if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool):
            raise ArgumentError(f"a seed must be an int, got {seed!r}")
        if not -(1 << 63) <= seed < 1 << 64:
            raise ArgumentError(f"a seed has at most 64 bits, got {seed}")
        front().values(self.state, "seeding")[:] = np.array([int(seed) & _WORD, 0], np.uint64).view(np.int64)
        return self

    def seed(self) -> int:
        """Starts again from a seed of the operating system's; returns it."""
        seed = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed last set."""
        return int(front().values(self.state, "initial_seed()")[0]) & _WORD

    def get_state(self) -> Any:
        """A copy of (seed, step)."""
        return front().constant(front().values(self.state, "get_state()").copy())

    def set_state(self, state: Any) -> Generator:
        """Continues from a state that ``get_state`` gave."""
        array = np.asarray(state)
        if array.shape != (2,) or array.dtype != np.int64:
            raise ArgumentError(f"a generator's state is i64[2], got {array.dtype}{list(array.shape)}")
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
        """State and stream number for one random operation; steps on where a new step begins.

        Inside the call of a module, all draws share one step, and the stream comes from the path of the innermost
        module and how often it has drawn; elsewhere every draw is a step of its own. The steps of a ``scan`` that draw
        are steps here too, and so are the branches of ``cond`` and the steps of ``while_loop``, behind which the next
        draw begins a new one, whatever has run.
        """
        if USED[0]:  # what runs again draws again, where it takes over the step that others began, too
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
            # NOTE: what is assigned below, without the time that an operation takes.
            np.add(state._data, _STEP, out=state._data)
            bump(state)
            return
        with no_grad():
            front().assign(state, ew.add(state, front().constant(_STEP)))


def drawn(scope: module_path.Scope) -> dict[Any, dict[str, int]]:
    """How often the modules of a scope have drawn, by generator."""
    return {key: value for key, value in scope.memory.items() if isinstance(key, tuple) and key[1] is DRAWS}


@contextmanager
def own_step(uncertain: bool = False) -> Iterator[None]:
    """Draws inside are those of one step of a loop: each generator goes on at the first one, and at the next behind.

    ``uncertain``: a value decides whether the block runs, so generators go on at the next draw behind it in any case.
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
    """The number of the stream for the ``occurrence``-th draw of the module at ``path`` in one step."""
    return zlib.crc32(f"{path}:{occurrence}".encode())


_WORD = (1 << 64) - 1
_FIRST_SEED = 0x5EED
default_generator = Generator()
"""Used by every random function that is not given another one."""


def manual_seed(seed: int) -> Generator:
    """Seeds the default generator and returns it."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seeds the default generator from the operating system; returns the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """A copy of the default generator's state."""
    return default_generator.get_state()


def set_rng_state(state: Any) -> None:
    """Sets the default generator's state."""
    default_generator.set_state(state)


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **_: Any) -> Iterator[None]:
    """Inside, the default generator goes on from its state; behind, it is as it was before. There is one for all
    ``devices``; without ``enabled`` nothing is done."""
    before = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if before is not None:
            set_rng_state(before)
