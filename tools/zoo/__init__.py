"""Model files that others made, from pinned public packages, through every way that graphc has, beside ONNX Runtime."""
