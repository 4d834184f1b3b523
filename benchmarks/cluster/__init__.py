"""Models of collectives and of data parallel steps on many ranks, and reports of them."""
