"""Transformations of loop nests that know no target."""
