"""What became of the samples of a subject, and what a suite of subjects is."""

from __future__ import annotations

import random
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from tools.conformance.samples import NotMappedError
from tools.nets.aten import alarm

SECONDS = 60
"""For one sample; longer is a failure."""


class Tally(NamedTuple):
    """What became of the samples of one subject in one column."""

    passed: int
    failed: list[str]
    """What went wrong, one line a sample."""
    excluded: dict[str, int]
    """How many samples are no calls of graphc, by reason."""


Row = tuple[str, Callable[[], None]]
"""What a sample is called, and what raises where it differs."""


class Suite(Protocol):
    """A table of PyTorch or numpy: its subjects, and the columns in which they are judged."""

    COLUMNS: dict[str, str]
    """What each column compares."""

    def standing(self) -> dict[str, str]:
        """``mapped``, ``missing`` or the reason why it is left out, for each subject."""
        ...

    def rows(self, subject: str, column: str) -> Sequence[Row]:
        """Return the samples of a subject."""
        ...


class UnequalError(Exception):
    """What is not as the table has it."""


def judge(suite: Any, subject: str, column: str, most: int | None = None, seed: int = 0) -> Tally:
    """Run the samples of a subject in a column: all, or in an order by the seed so many that ``most`` are compared."""
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
        # NOTE: whatever the call raises is what is looked for.
        except Exception as error:
            first = (str(error).splitlines() or [""])[0]
            failed.append(f"{number} {label}: {type(error).__name__}: {first}")
    return Tally(passed, failed, dict(excluded))
