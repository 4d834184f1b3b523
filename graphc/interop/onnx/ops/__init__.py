"""Rules of ONNX operators, one file a family."""
