"""Where values lie and for how long: the arena, non-temporal stores, prepacking of what is call-invariant."""
