"""Threads: distribution of work, barriers, and polls for Ctrl-C in long programs."""
