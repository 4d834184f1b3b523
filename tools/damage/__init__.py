"""Damaged files and killed processes: searches for crashes, hangs, wrong results and half-written files."""
