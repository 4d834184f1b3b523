"""Types of command line arguments."""

from __future__ import annotations

import argparse

import pytest

from graphc.cli.arguments import count, seconds


def test_counts():
    assert count("12") == 12
    for text in ("0", "-1", "x", "1.5", ""):
        with pytest.raises(argparse.ArgumentTypeError):
            count(text)


def test_seconds():
    assert seconds("0.25") == 0.25
    for text in ("0", "-1", "x", "nan", "inf", ""):
        with pytest.raises(argparse.ArgumentTypeError):
            seconds(text)
