"""Generate docs/options.md, the table of options, from graphc/base/config.py.

``python tools/options.py`` prints the page, ``--write`` stores it, ``--check`` exits 1 when the stored one is old.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = Path("docs") / "options.md"

if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from graphc.base import config  # noqa: E402  (the tool runs from a checkout that is not installed)
from tools import pages  # noqa: E402


def main(argv: Sequence[str] | None = None) -> int:
    """Print, write or check the page; return the exit status."""
    return pages.run(config.document, ROOT / PAGE, "tools/options.py", __doc__, argv)


if __name__ == "__main__":
    sys.exit(main())
