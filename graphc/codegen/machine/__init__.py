"""What code is made for: targets, their vectors and caches, and the measuring of a machine."""
