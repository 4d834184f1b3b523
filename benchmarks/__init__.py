"""Side-by-side measurements of graphc against other frameworks; run with ``python -m benchmarks``."""
