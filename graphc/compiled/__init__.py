"""Compiled functions and training steps: guards, bindings to live tensors, model files, checks."""
