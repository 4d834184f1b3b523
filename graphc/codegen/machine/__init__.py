"""Target machines: vectors, caches, costs, and a probe that measures a machine."""
