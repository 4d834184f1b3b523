"""File formats: containers, archives, NumPy's files, manifests; readers check every size before they allocate
memory."""
