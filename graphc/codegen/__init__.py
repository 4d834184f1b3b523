"""Code generation: loop kernels to native code. It knows loop nests and targets, but no tensor op."""
