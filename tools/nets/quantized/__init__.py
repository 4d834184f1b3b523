"""Random quantized ONNX graphs, computed exactly: by graphc, by ONNX's evaluator, and by ONNX Runtime."""
