"""Language models from files: decoders with caches, tokenizers, generation."""

from graphc.llm.decoder import Decoder
from graphc.llm.generation import Generator
from graphc.llm.loading import load
from graphc.llm.tokenizer import Tokenizer, load_tokenizer

__all__ = ["Decoder", "Generator", "Tokenizer", "load", "load_tokenizer"]
