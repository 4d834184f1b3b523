"""Floor 1: the two intermediate representations, graph and kernel, with text, verifier and interpreter."""
