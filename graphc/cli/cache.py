"""``graphc cache``: what lies in the disk cache of compiled programs, and emptying it."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from graphc.base import config
from graphc.cli import console
from graphc.compiler.cache import Cache

EXAMPLES = ("graphc cache",)


def add_to(parser: argparse.ArgumentParser) -> None:
    """Gives the command's parser its arguments."""
    parser.add_argument("--clear", action="store_true", help="remove all programs from the cache")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    settings = config.read()
    cache = Cache(Path(settings.cache_dir).expanduser(), settings.cache_size)
    removed = cache.clear() if options.clear else 0
    usage = cache.usage()
    if options.json:
        console.emit_json({**asdict(usage), "on": settings.cache, "removed": removed})
        return console.OK
    rows = [
        ["folder", usage.folder],
        ["used", "yes" if settings.cache else "no (GRAPHC_CACHE=off)"],
        ["programs", str(usage.entries)],
        ["size", f"{console.bytes_text(usage.bytes)} of {console.bytes_text(usage.limit)}"],
    ]
    rows += [["removed", str(removed)]] if options.clear else []
    console.emit("\n".join(f"{name:<9} {value}" for name, value in rows))
    return console.OK
