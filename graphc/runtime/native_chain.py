"""Chains of native programs: calls of one after the other that give each other arrays, and sizes that they compute."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from graphc.base.records import NamedTuple


class ChainStep(NamedTuple):
    """One program of a chain.

    The values of a call have indices: first its arguments, then for each step the outputs and the numbers read of them.
    """

    program: Hashable
    """Equal for the same program of several chains, which a call runs once."""
    call: Callable[..., Any]
    """Native callable that returns one array or a list of arrays; None where it declines the call."""
    inputs: tuple[int, ...]
    """Indices of the values that it takes."""
    is_single: bool
    """Whether it returns one array."""
    reads: tuple[tuple[int, int], ...] = ()
    """Range of each number that is read of its first outputs."""


class NativeChain:
    """Native programs that each call runs in order, where the numbers that it reads are in their ranges."""

    def __init__(self, steps: Sequence[ChainStep]):
        self.steps = tuple(steps)

    def run(self, arguments: Sequence[Any], done: dict[Hashable, Any]) -> Any:
        """Return what the last program returns; None where a program declines the call, or a number is out of its
        range. ``done`` has the results of programs that ran in the same call, and receives others."""
        values = [*arguments]
        results = None
        for program, call, inputs, is_single, reads in self.steps:
            results = done.get(program)
            if results is None:
                results = call(*[values[i] for i in inputs])
                if results is None:
                    return None
                done[program] = results
            outputs = (results,) if is_single else results
            values += outputs
            for (low, high), output in zip(reads, outputs, strict=False):
                number = output.item()
                if not low <= number <= high:
                    return None
                values.append(number)
        return results
