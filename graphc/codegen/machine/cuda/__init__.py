"""GPUs that run CUDA: blocks of threads in warps of 32."""
