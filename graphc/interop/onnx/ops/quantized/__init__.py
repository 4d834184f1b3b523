"""ONNX operators on quantized tensors: scales, products of integers."""
