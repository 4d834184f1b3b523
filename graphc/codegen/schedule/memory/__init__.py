"""Memory: lifetimes and offsets in the arena, non-temporal stores, prepacking of call-invariant values."""
