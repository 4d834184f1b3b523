"""``first_nan``: a check of finite numbers in a graph, and the search for the first that is not finite."""
