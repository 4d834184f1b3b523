"""Guards: what compiled code has seen of the world outside, each with its place, and how a change is noticed cheaply."""
