"""Generate docs/options.md, the table of options, from graphc/base/config.py.

``python tools/options.py`` prints the page, ``--write`` stores it, ``--check`` exits 1 when the stored one is old.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = Path("docs") / "options.md"

if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from graphc.base import config  # noqa: E402  (the tool runs from a checkout that is not installed)


def main(argv: Sequence[str] | None = None) -> int:
    """Print, write or check the page; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--write", action="store_true", help=f"store the page as {PAGE}")
    mode.add_argument("--check", action="store_true", help=f"exit 1 when {PAGE} differs")
    options = parser.parse_args(argv)
    text = config.document()
    target = ROOT / PAGE
    if options.write:
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, encoding="utf-8")
    elif options.check:
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            print(f"{PAGE} is old; run: python tools/options.py --write", file=sys.stderr)
            return 1
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
