"""Recorded plans of a step: when it hands over each bucket of gradients and asks for the result, without waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.cluster.step_model import BucketTimes, Plan
from graphc.distributed.communicator import Alone
from graphc.distributed.group import Group
from graphc.distributed.spans import START, WAIT, timeline


class Silent(Alone):
    """Process group of one process that pretends to be several: its reductions do nothing. The computed values are
    meaningless; the time is that of a rank that never waits."""

    name = "silent"

    def __init__(self, size: int):
        self.size = size

    def all_reduce(self, source: np.ndarray, result: np.ndarray, op: str) -> None:
        """Leave the array unchanged."""

    def gather_objects(self, value: Any) -> list[Any]:
        return [value] * self.size


SILENT = Group(Silent(2))
"""Two processes, of which this one hears nothing."""


def recorded_step(step: Callable[[], Any]) -> dict[str, Any]:
    """Return a step as plain data: its beginning on the machine's clock and its seconds, and for each bucket, in
    seconds from the beginning, when it was handed over, when its reduction began and ended, and when the optimizer
    asked for it and got it."""
    with timeline() as spans:
        begin = time.perf_counter()
        step()
        end = time.perf_counter()
    times: dict[str, dict[str, Any]] = {}
    for span in spans:
        bucket = times.setdefault(span.name, {"name": span.name, "nbytes": span.nbytes})
        bucket[span.kind] = (span.begin - begin, span.end - begin)
    return {"begin": begin, "seconds": end - begin, "buckets": [b for b in times.values() if len(b) == 5]}


def plan_of(name: str, samples: int, recorded: Mapping[str, Any]) -> Plan:
    """Return the plan of a step recorded with reductions that take no time."""
    buckets = [BucketTimes(b["nbytes"], b[START][0], b[WAIT][0]) for b in recorded["buckets"]]
    return Plan(name, samples, recorded["seconds"], tuple(buckets))
