"""Bounds of ``graphc bench --assert``: ``p99<50us``, ``throughput>1000``."""

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
    """Bound on one figure of a measurement."""

    text: str
    figure: str
    sign: str
    bound: float
    """Seconds, or calls per second."""

    def holds(self, figures: Mapping[str, float]) -> bool:
        """Check whether the measured figures meet the bound."""
        return _SIGNS[self.sign](figures[self.figure], self.bound)

    def as_json(self, figures: Mapping[str, float]) -> dict[str, Any]:
        """Return the fields ``JSON``."""
        return {"text": self.text, "value": figures[self.figure], "holds": self.holds(figures)}


JSON = (
    Field("text", "string", "the bound as written on the command line", optional=True),
    Field("value", "number", "the measured figure", "s or calls/s"),
    Field("holds", "boolean", "whether the figure meets the bound"),
)


def assertion(text: str) -> Assertion:
    """Parse an ``--assert`` argument. Raises ArgumentTypeError."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a bound such as p99<50us or throughput>1000")
    figure, sign, number, unit = match.groups()
    if figure not in (*TIMES, *RATES):
        raise argparse.ArgumentTypeError(
            f"{text!r}: unknown figure {figure!r}; choose one of {', '.join((*TIMES, *RATES))}"
        )
    if (unit not in UNITS) if figure in TIMES else unit:
        rule = f"needs a unit ({', '.join(UNITS)})" if figure in TIMES else "takes no unit: it is in calls per second"
        raise argparse.ArgumentTypeError(f"{text!r}: {figure} {rule}")
    try:
        return Assertion(text, figure, sign, float(number) * UNITS.get(unit, 1.0))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: {number!r} is not a number") from None
