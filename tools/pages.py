"""What the generators of pages in docs share: one command line that prints, stores or checks a page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path


def run(build: Callable[[], str], target: Path, command: str, doc: str | None, argv: Sequence[str] | None) -> int:
    """Prints what ``build`` makes, stores it as ``target`` (``--write``), or says whether that is old (``--check``);
    the exit status. ``command`` is what the user is to call again, ``doc`` the docstring of its module."""
    name = f"{target.parent.name}/{target.name}"
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--write", action="store_true", help=f"store the page as {name}")
    mode.add_argument("--check", action="store_true", help=f"exit 1 when {name} differs")
    options = parser.parse_args(argv)
    text = build()
    if options.write:
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, encoding="utf-8")
    elif not options.check:
        sys.stdout.write(text)
    elif not target.exists() or target.read_text(encoding="utf-8") != text:
        print(f"{name} is old; run: python {command} --write", file=sys.stderr)
        return 1
    return 0
