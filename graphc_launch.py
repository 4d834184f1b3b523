"""Starts the command ``graphc``; an interrupt while its modules still load ends it without a traceback."""

from __future__ import annotations

import sys
from importlib import import_module

INTERRUPTED = 130


def main() -> int:
    """Loads and runs the command line; returns its exit code."""
    try:
        return import_module("graphc.cli.main").main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
