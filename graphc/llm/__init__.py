"""Language models from files: decoders with caches, tokenizers, generation, adapters, perplexity."""

from typing import TYPE_CHECKING

from graphc.base.lazy import exports

if TYPE_CHECKING:
    from graphc.llm.public import *

# A process that finds the programs of a model in the cache imports neither modules nor the compiler.
__getattr__ = exports(__name__, globals(), f"{__name__}.public", hidden=())


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
