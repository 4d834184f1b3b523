"""``graphc completion``: print a script that completes commands, arguments and their values in a shell.

bash: ``eval "$(graphc completion bash)"`` in ``~/.bashrc``; zsh: ``eval "$(graphc completion zsh)"`` in ``~/.zshrc``
after ``compinit``; fish: ``graphc completion fish > ~/.config/fish/completions/graphc.fish``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphc.cli import console

EXAMPLES = ("graphc completion bash", "graphc completion zsh", "graphc completion fish")
TABLE = Path(__file__).parents[1] / "arguments.json"
"""Every command with its arguments. ``tools/pages/cli.py`` reads them from the parsers, since loading all parsers would
delay the start of a shell."""
Commands = Mapping[str, Any]


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=list(SCRIPTS), help="shell that will run the script")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    console.emit(SCRIPTS[options.shell](json.loads(TABLE.read_text(encoding="utf-8"))))
    return console.OK


def bash_script(commands: Commands) -> str:
    """Return the script for bash: it completes arguments of each command, choices of options, and file names."""
    lines = ["_graphc() {", '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words=""']
    lines += ['  if [ "$COMP_CWORD" -eq 1 ]; then', f'    words="{" ".join(commands)} --help --version"', "  else"]
    lines += ['    case "${COMP_WORDS[1]} $before" in']
    for name, command in commands.items():
        for argument in command["arguments"]:
            if argument["choices"] and argument["names"]:
                patterns = "|".join(f'"{name} {option}"' for option in argument["names"])
                lines.append(f'      {patterns}) words="{" ".join(argument["choices"])}";;')
    lines += ['      *) case "${COMP_WORDS[1]}" in']
    for name, command in commands.items():
        lines.append(f'        {name}) words="{" ".join(_words(command["arguments"]))}";;')
    lines += ["      esac;;", "    esac", "  fi"]
    lines += ['  COMPREPLY=($(compgen -W "$words" -- "$word"))', "}", "complete -o default -F _graphc graphc"]
    return "\n".join(lines)


def _words(arguments: Sequence[Mapping[str, Any]]) -> list[str]:
    options = [name for argument in arguments for name in argument["names"]]
    return [choice for a in arguments if not a["names"] for choice in a["choices"]] + options + ["--help"]


def zsh_script(commands: Commands) -> str:
    """Return the script for zsh, with the help text of each argument."""
    listed = " ".join(_quoted(f"{name}:{command['purpose']}") for name, command in commands.items())
    lines = ["#compdef graphc", "_graphc() {", "  local -a commands", f"  commands=({listed})"]
    lines += ["  if (( CURRENT == 2 )); then _describe command commands; return; fi"]
    lines += ["  local name=$words[2]", "  shift words; (( CURRENT-- ))", "  case $name in"]
    for name, command in commands.items():
        specs = [spec for argument in command["arguments"] for spec in _zsh_specs(argument)]
        lines.append(f"    {name}) _arguments {' '.join(map(_quoted, specs))};;")
    return "\n".join([*lines, "  esac", "}", "compdef _graphc graphc"])


def _zsh_specs(argument: Mapping[str, Any]) -> list[str]:
    """Return the specifications of one argument for zsh's ``_arguments``."""
    value = ""
    if argument["value"]:
        chosen = f"({' '.join(argument['choices'])})" if argument["choices"] else "_files"
        value = f":{_plain(argument['value'])}:{chosen}"
    if not argument["names"]:
        return [f"*{value}"]
    return [f"*{name}[{_plain(argument['help'])}]{value}" for name in argument["names"]]


def _plain(text: str) -> str:
    """Replace the characters that separate the fields of a specification."""
    return text.translate(str.maketrans({":": " ", "[": "(", "]": ")"}))


def fish_script(commands: Commands) -> str:
    """Return the script for fish, with the help text of each argument."""
    lines = [
        "complete -c graphc -n __fish_use_subcommand -l help",
        "complete -c graphc -n __fish_use_subcommand -l version",
    ]
    for name, command in commands.items():
        purpose = _quoted(command["purpose"])
        lines.append(f"complete -c graphc -n __fish_use_subcommand -f -a {name} -d {purpose}")
        for argument in command["arguments"]:
            lines.append(f"complete -c graphc -n '__fish_seen_subcommand_from {name}' {_fish_argument(argument)}")
    return "\n".join(lines)


def _fish_argument(argument: Mapping[str, Any]) -> str:
    words = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in argument["names"]]
    words += ["-r"] if argument["value"] and argument["names"] else []
    words += [f"-f -a {_quoted(' '.join(argument['choices']))}"] if argument["choices"] else []
    return " ".join([*words, f"-d {_quoted(argument['help'])}"])


def _quoted(text: str) -> str:
    """Quote a text for a shell, in single quotes."""
    return "'" + text.replace("'", "’") + "'"


SCRIPTS = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}
