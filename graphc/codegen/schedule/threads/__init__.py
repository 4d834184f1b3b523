"""Which work is shared by threads, where their barriers are, and where a long program looks for Ctrl-C."""
