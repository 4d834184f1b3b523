"""What holds for every test: programs are built each time, not found in a cache; Ctrl-C interrupts programs."""

from __future__ import annotations

import os
import signal

os.environ["GRAPHC_CACHE"] = "off"
# Shells start what runs in the background with SIGINT ignored, and programs that tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
