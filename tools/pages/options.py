"""Generate docs/options.md, the table of options, from graphc/base/config.py."""

from __future__ import annotations

import sys

from graphc.base.config import document as build_page
from tools.pages import page_command

__all__ = ["build_page"]

if __name__ == "__main__":
    sys.exit(page_command.main_of("options"))
