"""Language models from files: decoders with caches, tokenizers, generation, adapters, perplexity."""

from typing import TYPE_CHECKING

from graphc.base.lazy import exports

if TYPE_CHECKING:
    from graphc.llm.config import DecoderConfig, decoder_config
    from graphc.llm.decoder import Decoder
    from graphc.llm.generation import Generator
    from graphc.llm.loading import load
    from graphc.llm.lora import LoraLinear, add_lora, load_lora, lora_state, merge_lora, save_lora
    from graphc.llm.perplexities import perplexity
    from graphc.llm.sampling import Sampling
    from graphc.llm.tokenizer import Tokenizer, load_tokenizer

_MODULES = {
    "config": ("DecoderConfig", "decoder_config"),
    "decoder": ("Decoder",),
    "generation": ("Generator",),
    "loading": ("load",),
    "lora": ("LoraLinear", "add_lora", "load_lora", "lora_state", "merge_lora", "save_lora"),
    "perplexities": ("perplexity",),
    "sampling": ("Sampling",),
    "tokenizer": ("Tokenizer", "load_tokenizer"),
}
_NAMES = {name: f"{__name__}.{module}:{name}" for module, names in _MODULES.items() for name in names}

# A process that finds the programs of a model in the cache imports neither modules nor the compiler.
__getattr__ = exports(__name__, globals(), _NAMES, hidden=())


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
