"""Generate docs/options.md, the table of options, from graphc/base/config.py.

``python -m tools.pages.options`` prints the page, ``--write`` stores it, ``--check`` exits 1 when it is old.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from graphc.base import config
from tools.pages import page_command

ROOT = Path(__file__).resolve().parents[2]
PAGE = Path("docs") / "options.md"


def main(argv: Sequence[str] | None = None) -> int:
    """Print, write or check the page; return the exit status."""
    return page_command.run(config.document, ROOT / PAGE, "-m tools.pages.options", __doc__, argv)


if __name__ == "__main__":
    sys.exit(main())
