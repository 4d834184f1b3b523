"""Chat templates of model files: Jinja templates that format messages as the text that a model was trained on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

from graphc.base.errors import ArgumentError, ArtifactError, GraphcError
from graphc.base.installation import install_command

__all__ = ["render"]


def render(template: str, messages: Sequence[Mapping[str, str]], values: Mapping[str, Any]) -> str:
    """Return the text of messages by a template, with further variables of it, in a sandbox that forbids access to
    Python's internals and changes of arguments. The environment has the functions that ``transformers`` gives
    templates: ``raise_exception``, ``strftime_now``, ``tojson`` without HTML escapes, and the tag ``generation``.

    Raises ArgumentError for messages that the template refuses and without the package ``jinja2``; ArtifactError for a
    template that cannot be read or that fails.
    """
    environment = _environment()
    try:
        return environment.from_string(template).render(messages=[dict(m) for m in messages], **values)
    except GraphcError:
        raise
    except Exception as error:  # NOTE: a template may raise any exception of the operators that it uses.
        raise ArtifactError(f"the chat template fails: {type(error).__name__}: {error}") from None


def _refuse(message: str) -> NoReturn:
    raise ArgumentError(f"the chat template refuses the messages: {message}")


def _tojson(value: Any, indent: int | None = None, ensure_ascii: bool = False) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=ensure_ascii)


def _environment() -> Any:
    try:
        from jinja2.ext import Extension, loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        remedy = f"install jinja2: {install_command('llm')}"
        raise ArgumentError("chat templates need the package jinja2", remedy=remedy) from None

    class Generation(Extension):
        """The tag ``generation``, which marks answers for training; their text stays as it is."""

        tags = {"generation"}  # noqa: RUF012  # the base class declares a set

        def parse(self, parser: Any) -> Any:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda format: datetime.now().strftime(format)
    return environment
