"""Language models from files: decoders with caches, tokenizers, generation."""

from graphc.llm.decoder import Decoder
from graphc.llm.loading import load

__all__ = ["Decoder", "load"]
