"""Traced graphs as ONNX models: functional calls as ONNX's operators, all else op by op."""
