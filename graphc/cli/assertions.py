"""What a measurement must show: ``p99<50us``, ``throughput>1000``."""

from __future__ import annotations

import argparse
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from graphc.cli.fields import Field

TIMES = ("p10", "p50", "p90", "p99", "p99.9", "min", "max", "mean", "median")
RATES = ("throughput",)
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_SIGNS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_FORM = re.compile(r"\s*([a-z][\w.]*)\s*(<=|>=|<|>)\s*([\d.eE+-]+?)\s*([a-z]*)\s*")


class Assertion(NamedTuple):
    """One bound on a figure."""

    text: str
    figure: str
    sign: str
    bound: float
    """In seconds, or calls per second."""

    def holds(self, figures: Mapping[str, float]) -> bool:
        """Whether it does."""
        return _SIGNS[self.sign](figures[self.figure], self.bound)

    def as_json(self, figures: Mapping[str, float]) -> dict[str, Any]:
        """For JSON."""
        return {"text": self.text, "value": figures[self.figure], "holds": self.holds(figures)}


JSON = (
    Field("text", "string", "as it was given", optional=True),
    Field("value", "number", "what was measured", "s or calls/s"),
    Field("holds", "boolean", "whether it holds"),
)


def assertion(text: str) -> Assertion:
    """The type of ``--assert``."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no bound, such as p99<50us or throughput>1000")
    figure, sign, number, unit = match.groups()
    if figure not in (*TIMES, *RATES):
        raise argparse.ArgumentTypeError(f"{text!r}: there is no {figure!r}; one of {', '.join((*TIMES, *RATES))}")
    if (unit not in UNITS) if figure in TIMES else unit:
        wanted = f"a unit ({', '.join(UNITS)})" if figure in TIMES else "no unit, it is calls per second"
        raise argparse.ArgumentTypeError(f"{text!r}: {figure} has {wanted}")
    try:
        return Assertion(text, figure, sign, float(number) * UNITS.get(unit, 1.0))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: {number!r} is no number") from None
