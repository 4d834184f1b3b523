"""The command line of all page generators: print, store or check pages."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


def run(build: Callable[[], str], target: Path, command: str, doc: str | None, argv: Sequence[str] | None) -> int:
    """Run the command of a page whose text ``build`` returns; return the exit status.

    Without an option it prints the page, ``--write`` stores it as ``target``, ``--check`` compares it with that file.
    ``command`` names the generator in the advice to run it again; ``doc`` is the docstring of its module.
    """
    return run_all(lambda: {target: build()}, command, doc, argv)


def run_all(build: Callable[[], Mapping[Path, str]], command: str, doc: str | None, argv: Sequence[str] | None) -> int:
    """Run the command of several pages: ``build`` returns their texts by path."""
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--write", action="store_true", help="store the pages")
    mode.add_argument("--check", action="store_true", help="exit 1 if a stored page differs")
    options = parser.parse_args(argv)
    old = []
    for target, text in build().items():
        if options.write:
            target.parent.mkdir(exist_ok=True)
            target.write_text(text, encoding="utf-8")
        elif not options.check:
            sys.stdout.write(text)
        elif not target.exists() or target.read_text(encoding="utf-8") != text:
            old.append(f"{target.parent.name}/{target.name}")
    if old:
        print(f"{', '.join(old)} is old; run: python {command} --write", file=sys.stderr)
    return 1 if old else 0
