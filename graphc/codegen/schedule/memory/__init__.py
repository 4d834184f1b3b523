"""Where values lie and for how long: the arena, stores past the caches, what is prepared once."""
