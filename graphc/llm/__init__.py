"""Language models from files: decoders with caches, tokenizers, generation, adapters, perplexity."""

from graphc.llm.config import DecoderConfig, decoder_config
from graphc.llm.decoder import Decoder
from graphc.llm.generation import Generator
from graphc.llm.loading import load
from graphc.llm.lora import LoraLinear, add_lora, load_lora, lora_state, merge_lora, save_lora
from graphc.llm.perplexity import perplexity
from graphc.llm.sampling import Sampling
from graphc.llm.tokenizer import Tokenizer, load_tokenizer

__all__ = ["Decoder", "DecoderConfig", "Generator", "LoraLinear", "Sampling", "Tokenizer", "add_lora"]
__all__ += ["decoder_config", "load", "load_lora", "load_tokenizer", "lora_state", "merge_lora", "perplexity"]
__all__ += ["save_lora"]
