"""ONNX operators of images: resizing, grids, regions, detection."""
