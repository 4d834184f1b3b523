"""Peers: one function each that prepares a workload, ``prepare(workload, folder, threads, variant) -> Prepared``.

A peer's library is imported only in the peer's own child process. A name may have a variant behind a colon:

- ``graphc:70%`` is a training step with a memory budget, ``graphc:int8`` a model file with narrow weights,
  ``graphc:onnx`` a model file of the ONNX file that torch writes;
- of training loops, ``graphc`` compiles the whole step, ``graphc.compile`` the models in an ordinary loop,
  ``graphc:eager`` nothing; ``graphc:bf16`` and ``torch:bf16`` have narrow products;
- ``torch:checkpoint`` is a training step with PyTorch's checkpoint around each block.
"""

PEERS = {
    "graphc": ("graphc", "benchmarks.peers.graphc_calls:prepare_file"),
    "graphc.compile": ("graphc", "benchmarks.peers.graphc_calls:prepare_compiled"),
    "torch": ("torch", "benchmarks.peers.torch_calls:prepare_eager"),
    "compile": ("torch", "benchmarks.peers.torch_calls:prepare_compiled"),
    "onnxruntime": ("onnxruntime", "benchmarks.peers.onnx_calls:prepare_onnxruntime"),
    "openvino": ("openvino", "benchmarks.peers.onnx_calls:prepare_openvino"),
    "jax": ("jax", "benchmarks.peers.jax_jit:prepare"),
}
"""Library, and function that prepares a workload, by name."""
OWN = ("graphc", "graphc.compile")


def needs_onnx(name: str) -> bool:
    """Return whether a peer needs the ONNX file of a model."""
    return name in ("onnxruntime", "openvino", "graphc:onnx")
