"""``tier="auto"``: the first calls of a graph run by NumPy references, while a child process builds its program."""
