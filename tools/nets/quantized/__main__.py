"""Command ``python -m tools.nets.quantized``: random quantized graphs are computed exactly, or alike on all targets.

With ``--targets``, the same graphs are compared between targets.
"""

from __future__ import annotations

import sys

from tools.nets import run
from tools.nets.quantized import exact, targets

_COUNT = 2000
_TARGETS = "--targets"

if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != _TARGETS]
    sys.exit(run.main(targets.NET if _TARGETS in sys.argv else exact.NET, words, _COUNT))
