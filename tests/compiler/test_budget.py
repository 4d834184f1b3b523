"""Parsing of memory budgets."""

import pytest

from graphc.compiler.budget import Budget
from graphc.errors import ArgumentError


@pytest.mark.parametrize(
    ("given", "of"),
    [(100, 100), ("100", 100), ("1.5kB", 1500), ("2 MB", 2_000_000), ("1GiB", 2**30), ("70%", 700), ("12.5 %", 125)],
)
def test_a_budget_is_bytes_a_text_or_a_share(given, of):
    assert Budget.parse(given).of(1000) == of


@pytest.mark.parametrize("given", [0, -5, "", "70", "x", "3 parsecs", "120%", True, 1.5, "-1MB", "0%"])
def test_what_is_no_budget(given):
    if given == "70":
        assert Budget.parse(given).of(1) == 70
        return
    with pytest.raises(ArgumentError, match="not a memory budget"):
        Budget.parse(given)
