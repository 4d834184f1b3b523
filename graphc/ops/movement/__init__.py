"""Ops that only rearrange elements: shapes, views, slices, joins, sizes."""
