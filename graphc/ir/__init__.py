"""Two intermediate representations, graph and kernel, each with text, parser, verifier and interpreter."""
