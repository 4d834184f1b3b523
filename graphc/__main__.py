"""Command line as ``python -m graphc``."""

from __future__ import annotations

import sys

from graphc.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
