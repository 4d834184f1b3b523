"""Timeline of reductions: when they are started, run and waited for, recorded inside ``timeline()``."""

from __future__ import annotations

from graphc.base.progress import timeline

__all__ = ["timeline"]

START, REDUCE, WAIT = "start", "reduce", "wait"
"""Kinds of spans, named after their bucket: it is queued, a thread reduces it, the computing thread waits for the
result."""
