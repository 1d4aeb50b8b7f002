"""What separates labels within a cell: found where the cells show it, uncertain where not."""

from __future__ import annotations

import itertools

import pytest

from hilltop.data.formats.text.separators import JSON_TEXT, Separator, find_separator

NAMES = ["haze", "primary", "clear", "water", "road"]
PAIRS = [list(pair) for pair in itertools.combinations(NAMES, 2)]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["cat", "dog", ""], Separator(None)),
        (["cat|dog", "emu"], Separator("|")),
        (["cat;red fox", "emu"], Separator(";")),
        (["7 1 2 0", "5", "18"], Separator(" ")),
        (["27", "2,27"], Separator(",")),
        (["/m/01,/t/02", "/m/03"], Separator(",", inferred=True)),
        (['["a"]', "[]"], Separator(JSON_TEXT)),
        (["<c#><winforms>", "<html>"], Separator("><")),
        (["#cat#dog", "#emu"], Separator("#", inferred=True)),
        ([*"abcdefgh", "hot a", "red fox", "big owl"], Separator(None, inferred=True)),
        (["a b", "a b, c", "c", "a b, d", "c, d", "d"], Separator(",", inferred=True)),
        (
            [
                "Cat",
                "dog",
                "emu",
                "cat, Owl",
                "Dog, yak",
                "emu, elk",
                "cat, gnu",
                "dog, ox",
                "emu, ape",
            ],
            Separator(",", inferred=True),
        ),
        ([" ".join(pair) for pair in PAIRS], Separator(" ", inferred=True)),
        ([", ".join(pair) for pair in PAIRS], Separator(",", inferred=True)),
    ],
)
def test_cells_show_what_separates_them(cells: list[str], expected: Separator) -> None:
    assert find_separator(cells) == expected


@pytest.mark.parametrize(
    ("cells", "likely"),
    [
        (["traffic light", "stop sign", "cat"], " "),
        ([*"abcdefgh", "a b", "c d"], " "),
        ([f"thing {at} of {at + 100}" for at in range(50)], " "),
        (["Doe, John", "Roe, Ann"], ","),
        ([f"Doe {at}, John {at}" for at in range(9)], ","),
        (["a;b", "c|d"], ";"),
    ],
)
def test_names_with_blanks_and_commas_are_not_taken_apart(cells: list[str], likely: str) -> None:
    found = find_separator(cells)
    assert not found.certain
    assert found.mark == likely
