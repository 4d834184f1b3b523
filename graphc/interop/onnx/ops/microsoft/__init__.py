"""ONNX operators of the domain com.microsoft."""
