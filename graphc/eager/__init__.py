"""Eager mode: ops are computed at once, recorded, and differentiated backwards and forwards."""
