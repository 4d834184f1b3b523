"""Import paths that users of PyTorch know; what they hand on lies elsewhere."""
