"""Language models from files: decoders with caches, tokenizers, generation."""

from graphc.llm.config import DecoderConfig, decoder_config
from graphc.llm.decoder import Decoder
from graphc.llm.generation import Generator
from graphc.llm.loading import load
from graphc.llm.sampling import Sampling
from graphc.llm.tokenizer import Tokenizer, load_tokenizer

__all__ = ["Decoder", "DecoderConfig", "Generator", "Sampling", "Tokenizer", "decoder_config", "load", "load_tokenizer"]
