"""Kernels to native code; knows loop nests and targets, no tensor op."""
