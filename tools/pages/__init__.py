"""Generators of the reference pages in docs: each prints a page, stores it, or checks the stored page."""
