"""Ops that choose elements: by index, by order."""
