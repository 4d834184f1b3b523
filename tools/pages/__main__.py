"""``python -m tools.pages``: print, store or check the generated pages of the documentation."""

from __future__ import annotations

import sys

from tools.pages.page_command import main

if __name__ == "__main__":
    sys.exit(main())
