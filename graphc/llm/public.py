"""Public names of the package: read, not run (``base.lazy.imported_by``)."""

from graphc.llm.config import DecoderConfig, decoder_config
from graphc.llm.decoder import Decoder
from graphc.llm.generation import Generator
from graphc.llm.loading import load
from graphc.llm.lora import LoraLinear, add_lora, load_lora, lora_state, merge_lora, save_lora
from graphc.llm.perplexities import perplexity
from graphc.llm.sampling import Sampling
from graphc.llm.tokenizer import Tokenizer, load_tokenizer
