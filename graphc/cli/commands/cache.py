"""``graphc cache``: list, measure or empty the disk cache of compiled programs."""

from __future__ import annotations

import argparse
import re
import time
from dataclasses import asdict
from typing import Any

from graphc.base import config
from graphc.cli import console
from graphc.cli.fields import Field
from graphc.compiler.cache import Cache
from graphc.files.cache_folders import cache_folders

EXAMPLES = (
    "graphc cache",
    "graphc cache list",
    "graphc cache size --json",
    "graphc cache clear --older-than 7d",
    "graphc cache clear",
)
JSON = (
    Field("folder", "string", "folder of the cache (GRAPHC_CACHE_DIR)"),
    Field("entries", "integer", "number of programs"),
    Field("bytes", "integer", "size of all programs", "B"),
    Field("limit", "integer", "largest size allowed (GRAPHC_CACHE_SIZE)", "B"),
    Field("on", "boolean", "whether the cache is in use (GRAPHC_CACHE)"),
    Field("removed", "integer", "number of programs removed"),
    Field(
        "programs[].key", "string", "list only: digest of everything that the program's code depends on", optional=True
    ),
    Field("programs[].bytes", "integer", "size of the program", "B"),
    Field("programs[].used", "number", "time since its last use", "s"),
)
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=("list", "size", "clear"),
        default="size",
        help="list: print each program; size: print how many there are and their size (default); clear: remove them",
    )
    parser.add_argument(
        "--older-than",
        type=age,
        metavar="TIME",
        help="clear only programs not used for TIME, such as 30m, 12h, 7d or 2w (default: all)",
    )
    parser.add_argument("--clear", action="store_true", help="the same as the action clear")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.set_defaults(run=run)


def age(text: str) -> float:
    """Convert an age such as ``7d`` to seconds. Raises ArgumentTypeError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text)
    if match is None or not float(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 12h or 7d")
    return float(match[1]) * UNITS[match[2]]


def run(options: argparse.Namespace) -> int:
    clears = options.clear or options.action == "clear"
    if options.older_than is not None and not clears:
        raise console.UsageError("--older-than applies only to clear", remedy="run graphc cache clear --older-than 7d")
    if options.clear and options.action == "list":
        raise console.UsageError("--clear and list are two different actions", remedy="choose one of the two")
    settings = config.read()
    cache = Cache(cache_folders()[0], settings.cache_size)
    removed = cache.clear(options.older_than or 0.0) if clears else 0
    usage = cache.usage()
    programs = programs_of(cache) if options.action == "list" else []
    if options.json:
        listed = {"programs": programs} if options.action == "list" else {}
        console.emit_json({**asdict(usage), "on": settings.cache, "removed": removed, **listed})
        return console.OK
    if programs:
        rows = [["program", "size", "not used for"]]
        rows += [[p["key"][:16], console.bytes_text(p["bytes"]), age_text(p["used"])] for p in programs]
        console.emit(console.table(rows))
    rows = [
        ["folder", usage.folder],
        ["used", "yes" if settings.cache else "no (GRAPHC_CACHE=off)"],
        ["programs", str(usage.entries)],
        ["size", f"{console.bytes_text(usage.bytes)} of {console.bytes_text(usage.limit)}"],
    ]
    rows += [["removed", str(removed)]] if clears else []
    console.emit("\n".join(f"{name:<9} {value}" for name, value in rows))
    return console.OK


def programs_of(cache: Cache) -> list[dict[str, Any]]:
    """List every program, the most recently used first."""
    now = time.time()
    return [{"key": key, "bytes": size, "used": max(now - used, 0.0)} for key, size, used in cache.entries()]


def age_text(seconds: float) -> str:
    """Format a time in its largest whole unit: ``2 d``."""
    unit = next((name for name, size in reversed(UNITS.items()) if seconds >= size), "s")
    return f"{seconds / UNITS[unit]:.0f} {unit}"
