"""The CPU schedule: every kernel of a program gets its loops tiled, vectorised and unrolled."""
