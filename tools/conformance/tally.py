"""Outcomes of the samples of a subject, and the interface of a suite of subjects."""

from __future__ import annotations

import random
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from tools.conformance.samples import NotMappedError
from tools.damage.forked import alarm

SECONDS = 60
"""Time limit for one sample; longer is a failure."""


class Tally(NamedTuple):
    """Outcomes of the samples of one subject in one column."""

    passed: int
    failed: list[str]
    """Failures, one line a sample."""
    excluded: dict[str, int]
    """Counts of samples that graphc cannot be called with, by reason."""


Row = tuple[str, Callable[[], None]]
"""Label of a sample, and a function that raises where the sample differs."""


class Suite(Protocol):
    """A table of PyTorch or numpy: its subjects, and the columns in which they are judged."""

    COLUMNS: dict[str, str]
    """Comparison made by each column."""

    def standing(self) -> dict[str, str]:
        """Return ``mapped``, ``missing`` or the reason for leaving it out, for each subject."""
        ...

    def rows(self, subject: str, column: str) -> Sequence[Row]:
        """Return the samples of a subject."""
        ...


class UnequalError(Exception):
    """A result that differs from the table's expectation."""


def judge(suite: Any, subject: str, column: str, most: int | None = None, seed: int = 0) -> Tally:
    """Run the samples of a subject in a column: all, or in seeded order until ``most`` are compared."""
    passed, failed, excluded = 0, [], Counter[str]()
    rows = list(enumerate(suite.rows(subject, column)))
    if most is not None:
        random.Random(zlib.crc32(f"{subject}/{column}/{seed}".encode())).shuffle(rows)
    for number, (label, action) in rows:
        if passed + len(failed) == most:
            break
        try:
            with alarm(SECONDS):
                action()
            passed += 1
        except NotMappedError as reason:
            excluded[str(reason)] += 1
        except UnequalError as fault:
            failed.append(f"{number} {label}: {fault}")
        # NOTE: any exception of the call is a finding.
        except Exception as error:
            first = (str(error).splitlines() or [""])[0]
            failed.append(f"{number} {label}: {type(error).__name__}: {first}")
    return Tally(passed, failed, dict(excluded))
