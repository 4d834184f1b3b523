"""List the ATen operators whose rules ``tools.nets.aten`` judges by PyTorch's own samples.

``python -m tools.interop.aten_calls`` prints the list, ``--write`` stores it for the tests (about five minutes). The
tests require a sample of every other operator of the table. Needs the extra ``conformance``.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from tools.nets.aten import cases, record

STORED = Path(__file__).resolve().parents[2] / "tests" / "interop" / "aten" / "judged.txt"
HEAD = "# What `python -m tools.nets.aten` judges; written by `python -m tools.interop.aten_calls --write`.\n"


def judged() -> set[str]:
    """Return the operators that samples of PyTorch's tables call, with element types that graphc has."""
    names: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in cases(0):
            names |= record(case).names
    return names


def stored() -> set[str]:
    """Return the list as it is stored."""
    return {line for line in STORED.read_text(encoding="utf-8").splitlines() if not line.startswith("#")}


def main(argv: Sequence[str] | None = None) -> int:
    """Print or write the list; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"store it as {STORED.name}")
    options = parser.parse_args(argv)
    text = HEAD + "".join(f"{name}\n" for name in sorted(judged()))
    if options.write:
        STORED.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
