"""Types of command line arguments."""

from __future__ import annotations

import argparse

import pytest

from graphc.cli.arguments import count, seconds, threads
from graphc.runtime.threads import MAX_THREADS, get_num_threads, set_num_threads


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


def test_threads_hold_from_now_on():
    before = get_num_threads()
    try:
        assert threads("3") == get_num_threads() == 3
        for text in ("0", "x", str(MAX_THREADS + 1)):
            with pytest.raises(argparse.ArgumentTypeError):
                threads(text)
        assert get_num_threads() == 3
    finally:
        set_num_threads(before)
