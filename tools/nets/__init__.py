"""Nets: searches for wrong results until a time limit, each over one kind of random program."""
