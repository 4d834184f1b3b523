"""Which work is shared by threads, where they meet, and where a long program looks for Ctrl-C."""
