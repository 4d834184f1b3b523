"""The command line of all page generators: print, store or check pages.

``python -m tools.pages [NAME ...]`` prints the pages of all generators or of some, ``--write`` stores them, ``--check``
exits 1 when a stored one is old. ``python -m tools.pages.NAME`` is the command of one generator.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("ops", "aten_ops", "onnx_ops", "onnx_modules", "onnx_out_ops", "options", "cli", "torch_names")
"""Generators: modules of this package with ``build_page``, the text of docs/NAME.md, or ``build``, texts by path."""


def build(name: str) -> Mapping[Path, str]:
    """Return the texts of a generator's pages by path."""
    module = importlib.import_module(f"tools.pages.{name}")
    return module.build() if hasattr(module, "build") else {ROOT / "docs" / f"{name}.md": module.build_page()}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command of the named generators; return the exit status."""
    return run(build, NAMES, "-m tools.pages", __doc__, argv)


def main_of(name: str) -> int:
    """Run the command of one generator; return the exit status."""
    return main([name, *sys.argv[1:]])


def run(
    texts_of: Callable[[str], Mapping[Path, str]],
    names: Sequence[str],
    command: str,
    doc: str | None,
    argv: Sequence[str] | None,
) -> int:
    """Print, store or check the texts of some names; ``command`` is what the advice for old pages says."""
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--write", action="store_true", help="store the pages")
    mode.add_argument("--check", action="store_true", help="exit 1 if a stored page differs")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(names)} (default: all)")
    options = parser.parse_args(argv)
    if unknown := set(options.names) - set(names):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(names)}")
    old = []
    for name in options.names or names:
        for target, text in texts_of(name).items():
            if options.write:
                target.parent.mkdir(exist_ok=True)
                target.write_text(text, encoding="utf-8")
            elif not options.check:
                sys.stdout.write(text)
            elif not target.exists() or target.read_text(encoding="utf-8") != text:
                old.append(name)
    for name in dict.fromkeys(old):
        which = f" {name}" if len(names) > 1 else ""
        print(f"docs/{name} is old; run: python {command}{which} --write", file=sys.stderr)
    return 1 if old else 0
