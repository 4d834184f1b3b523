"""Code generation: loop kernels to native code, with loop nests and targets, but no tensor op."""
