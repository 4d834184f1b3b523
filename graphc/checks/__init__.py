"""Checks: the same computation done in two ways and compared, and the first part in which they differ."""
