"""``hilltop --completion SHELL``: scripts that complete commands, options and their values."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from hilltop.checks import check_choice
from hilltop.cli.common import COMMON

SHELLS = ("bash", "zsh", "fish")
_ALONE = ("--help", "--version", "--completion")
_BASH = """\
# Completion of hilltop: put this line into ~/.bashrc, or source what it prints.
#     source <(hilltop --completion bash)
_hilltop() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="{commands}"
  else
    case "${{COMP_WORDS[1]}} $prev" in
{values}
    esac
    if [ -z "$words" ] && [ "${{cur#-}}" != "$cur" ]; then
      case "${{COMP_WORDS[1]}}" in
{options}
      esac
    fi
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _hilltop hilltop
"""
_ZSH = """\
#     source <(hilltop --completion zsh)
autoload -Uz compinit bashcompinit
(( $+functions[compdef] )) || compinit
bashcompinit
"""


def completion_script(shell: str) -> str:
    """Return the script for a shell, from the same options that the help shows.

    Args:
        shell: bash, zsh or fish.
    """
    check_choice("--completion", shell, SHELLS)
    offered = {name: dict(_offered(name)) for name in _commands()}
    if shell == "fish":
        return "\n".join(_fish(offered)) + "\n"
    script = _bash(offered)
    return _ZSH + script if shell == "zsh" else script


def _commands() -> tuple[str, ...]:
    from hilltop.cli.main import COMMANDS

    return tuple(COMMANDS)


def _offered(name: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Options of a command, each with the values to choose from, if they are few."""
    from hilltop.cli.help import visible_options
    from hilltop.cli.main import load_command

    for item in visible_options(load_command(name)):
        if not item.positional:
            listed = item.value.startswith("{")
            yield item.name, tuple(item.value.strip("{}").split(",")) if listed else ()
    yield from ((option, ()) for option in COMMON)


def _bash(offered: dict[str, dict[str, tuple[str, ...]]]) -> str:
    values = [
        f'      "{name} {option}") words="{" ".join(choices)}" ;;'
        for name, options in offered.items()
        for option, choices in options.items()
        if choices
    ]
    options = [f'        {name}) words="{" ".join(known)}" ;;' for name, known in offered.items()]
    return _BASH.format(
        commands=" ".join([*offered, *_ALONE]),
        values="\n".join(values),
        options="\n".join(options),
    )


def _fish(offered: dict[str, dict[str, tuple[str, ...]]]) -> Iterator[str]:
    yield "#     hilltop --completion fish > ~/.config/fish/completions/hilltop.fish"
    yield f"complete -c hilltop -n __fish_use_subcommand -a {shlex.quote(' '.join(offered))}"
    for name, options in offered.items():
        for option, choices in options.items():
            said = f"complete -c hilltop -n '__fish_seen_subcommand_from {name}' -l {option[2:]}"
            yield f"{said} -xa {shlex.quote(' '.join(choices))}" if choices else said
