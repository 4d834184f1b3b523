"""ONNX operators of classical machine learning: trees, features, texts."""
