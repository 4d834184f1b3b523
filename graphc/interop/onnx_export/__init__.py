"""Export of traced graphs to ONNX: functional calls become ONNX operators, all other nodes are written op by op."""
