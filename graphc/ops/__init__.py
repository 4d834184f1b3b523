"""Op definitions, and the dispatcher through which every application of an op goes."""
