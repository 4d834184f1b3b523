"""Bytes on disk: containers, archives, NumPy's files, manifests; every size is checked before memory is taken."""
