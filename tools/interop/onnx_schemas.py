"""Write the table of ONNX's operator schemas (``graphc/interop/onnx/schemas.txt``) from the installed package ``onnx``.

``python -m tools.interop.onnx_schemas`` writes it; ``--check`` prints the lines that differ.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from onnx import defs

from graphc.interop.onnx.package import versions_of_package
from graphc.interop.onnx.schemas import MAIN, TABLE, row_of


def lines() -> list[str]:
    """Return the lines of the table: the newest version of each domain, then the versions of each operator."""
    schemas = sorted(defs.get_all_schemas_with_history(), key=lambda s: (s.domain, s.name, s.since_version))
    newest = [f"{domain or MAIN}  {version} newest" for domain, version in sorted(versions_of_package().items())]
    rows = [(s, json.dumps(row_of(s), separators=(",", ":"), sort_keys=True)) for s in schemas]
    return newest + [f"{s.domain or MAIN} {s.name} {s.since_version} {row}" for s, row in rows]


def main(argv: Sequence[str] | None = None) -> int:
    """Write or check the table; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="print the lines that differ instead")
    options = parser.parse_args(argv)
    if not options.check:
        TABLE.write_text("\n".join(lines()) + "\n", encoding="utf-8")
        return 0
    different = sorted(set(lines()) ^ set(TABLE.read_text(encoding="utf-8").splitlines()))
    print("\n".join(different))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
