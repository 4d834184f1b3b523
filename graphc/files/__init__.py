"""File formats: containers, archives, NumPy's files, manifests; sizes are checked before memory is allocated."""
