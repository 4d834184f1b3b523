"""What holds for every test: programs are built each time, not found in a cache."""

from __future__ import annotations

import os

os.environ["GRAPHC_CACHE"] = "off"
