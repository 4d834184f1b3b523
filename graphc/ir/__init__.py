"""The two intermediate representations, graph and kernel, with text, verifier and interpreter."""
