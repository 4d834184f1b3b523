"""Start the command ``graphc``; an interrupt while its modules still load ends it without a traceback."""

from __future__ import annotations

import signal
import sys
from importlib import import_module


def main() -> int:
    """Load and run the command line; return its exit code."""
    # NOTE: KeyboardInterrupt inside an import can come out of it as an ImportError, so the signal ends the process.
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    command = import_module("graphc.cli.main").main
    signal.signal(signal.SIGINT, handler)
    return command()


if __name__ == "__main__":
    sys.exit(main())
