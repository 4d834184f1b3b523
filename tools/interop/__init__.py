"""Checks against other software: suites of ONNX, published models, PyTorch's own samples of operators."""
