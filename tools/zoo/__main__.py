"""``python -m tools.zoo``: fetch pinned packages and examine every model file in them.

For each file: whether graphc reads it, and for compiled calls, exported files and eager mode with three sizes of every
open dimension the error or the difference from ONNX Runtime, whether it decides alike, and the number of programs; the
time of the first result of both, and the ratio of their times. ``--write`` renews docs/zoo.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from tools import child
from tools.zoo import page
from tools.zoo.catalogue import ModelFile, packages

SECONDS = 600.0
"""Timeout of a file."""


def main(words: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status: 1 where a file is refused, differs or decides otherwise."""
    parser = argparse.ArgumentParser(prog="python -m tools.zoo", description="Examine public model files.")
    parser.add_argument("--only", default="", help="examine only files whose names have this text")
    parser.add_argument("--folder", type=Path, default=Path.home() / ".cache" / "graphc-zoo", help="keep archives here")
    parser.add_argument("--first", action="store_true", help="also measure first results and memory, each alone")
    parser.add_argument("--results", type=Path, help="write the results to this JSON file; finished files are kept")
    parser.add_argument("--write", action="store_true", help="renew docs/zoo.md")
    options = parser.parse_args(words)
    files = [f for p in packages() for f in p.files if options.only in f.name]
    kept = json.loads(options.results.read_text()) if options.results and options.results.exists() else {}
    rows: dict[str, dict[str, Any]] = {}
    bar = tqdm(files, disable=not sys.stderr.isatty())
    for file in bar:
        bar.set_postfix_str(file.name)
        rows[file.name] = kept.get(file.name) or _examine(file, options.folder, options.first)
        if bar.disable:
            sys.stderr.write(page.line(file.name, rows[file.name]) + "\n")
        if options.results:
            options.results.write_text(json.dumps(kept | rows, indent=1) + "\n")
    sys.stdout.write(page.table(rows) + "\n")
    if options.write:
        page.write(rows)
    return 1 if any(page.is_fault(row) for row in rows.values()) else 0


def _examine(file: ModelFile, folder: Path, is_first: bool) -> dict[str, Any]:
    found = _child(file, "all", folder)
    if is_first:
        for engine in ("graphc", "onnxruntime"):
            found[f"first_{engine}"] = _child(file, f"first-{engine}", folder)
    return found


def _child(file: ModelFile, way: str, folder: Path) -> dict[str, Any]:
    words = [sys.executable, "-m", "tools.zoo.one_file", file.name, way, str(folder)]
    with tempfile.TemporaryDirectory() as cache:
        ended = child.run(words, SECONDS, environment={"GRAPHC_CACHE_DIR": cache, "GRAPHC_THREADS": "1"})
    lines = ended.output.strip().splitlines()
    if ended.status or not lines:
        reason = f"timed out after {SECONDS:.0f} s" if ended.is_late else (lines or ["no output"])[-1]
        return {"failed": reason[:300]}
    return json.loads(lines[-1])


if __name__ == "__main__":
    sys.exit(main())
