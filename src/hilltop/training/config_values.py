"""Plain values of a file or a command, turned into the fields of a dataclass and back."""

from __future__ import annotations

import dataclasses
import typing
from pathlib import Path
from typing import Any, Literal

from hilltop.checks import did_you_mean


def plain_value(value: Any) -> Any:
    """Return a value that YAML and JSON can hold."""
    if isinstance(value, dict):
        return {key: plain_value(item) for key, item in value.items()}
    return str(value) if isinstance(value, Path) else value


def build_dataclass(cls: type, values: dict[str, Any], prefix: str, faults: list[str]) -> Any:
    """Build a dataclass from a dictionary, field by field, collecting faults."""
    hints = typing.get_type_hints(cls)
    known = {item.name for item in dataclasses.fields(cls)}
    arguments: dict[str, Any] = {}
    for key, value in values.items():
        name = str(key).replace("-", "_")
        if name not in known:
            faults.append(f"{prefix}{key} is not known.{did_you_mean(name, known)}")
            continue
        hint = hints[name]
        if dataclasses.is_dataclass(hint):
            if isinstance(value, dict):
                arguments[name] = build_dataclass(
                    typing.cast(type, hint), value, f"{name}.", faults
                )
            else:
                faults.append(f"{prefix}{name} must hold names and values, but got {value!r}.")
            continue
        converted = _convert(value, hint)
        if converted is _WRONG:
            faults.append(f"{prefix}{name} cannot be {value!r}; expected {_words(hint)}.")
        else:
            arguments[name] = converted
    return cls(**arguments)


_WRONG = object()


def _convert(value: Any, hint: Any) -> Any:
    """Return the value as one of the types of ``hint``, or the mark that none fits."""
    choices = typing.get_args(hint)
    if typing.get_origin(hint) is Literal:
        return str(value) if str(value) in choices else _WRONG
    if choices and typing.get_origin(hint) is not dict:
        if value is None and type(None) in choices:
            return None
        for choice in choices:
            converted = _WRONG if choice is type(None) else _convert(value, choice)
            if converted is not _WRONG:
                return converted
        return _WRONG
    if hint is Path and isinstance(value, str):
        return Path(value)
    if hint is float and isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            return float(value)  # YAML reads 1e-4 as text
        except (ValueError, OverflowError):
            return _WRONG
    plain = typing.get_origin(hint) or hint
    wrong_bool = isinstance(value, bool) and plain is not bool
    return value if isinstance(value, plain) and not wrong_bool else _WRONG


def _words(hint: Any) -> str:
    choices = typing.get_args(hint)
    if typing.get_origin(hint) is Literal:
        return " or ".join(choices)
    if choices and typing.get_origin(hint) is not dict:
        return " or ".join(_words(choice) for choice in choices)
    return {"NoneType": "nothing", "str": "text", "float": "a number", "int": "a whole number"}.get(
        getattr(hint, "__name__", ""), str(getattr(hint, "__name__", hint))
    )
