"""Models and tensors of other frameworks."""
