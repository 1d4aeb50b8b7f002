"""Words by which a table is understood: names of columns, and what cells mean.

Only words that cannot mean anything else are known. What 0, "no", -1 and an empty cell mean is
never assumed: the user says it, and every open word is asked for at once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hilltop.checks import pluralize
from hilltop.data.label_table import State
from hilltop.data.layout import Question, ReadOptions, ask


def word_set(words: str) -> frozenset[str]:
    """Words with spaces or line ends between as a set."""
    return frozenset(words.split())


_IMAGE = word_set(
    """
    image images img imageid imgid imagename imgname imagefile imagefilename imagepath imgpath
    imageindex imageurl imageuri imageref filename filenames file files filepath path fname
    photo photoid photoname picture picturename pictureid video videoid ytid youtubeid clipid
    audio audiofilename sourcefile slicename patchid isicid url bild datei foto fichier imagen
    """
)
_ID = word_set(
    """
    id ids uid uuid guid key name docid documentid movieid itemid sampleid recordid commentid
    studyid ecgid tweetid pmid externalid index
    """
)
_LABELS = word_set(
    """
    label labels tag tags class classes category categories target targets genre genres
    findinglabels findinglabel labelnames labelids attributeids attributes attribute
    positivelabels topics topic emotions emotion classids categoryids keywords keyword meshterms
    genreids taglist labellist labelset multilabels gtlabel gtlabels species
    """
)
_SINGLE = word_set(
    """
    class classname labelname classid categoryid categoryname objectclass commonname
    scientificname speciesname taxon
    """
)
_NEITHER = word_set(
    """
    id ids uid uuid guid fold folds split splits sex gender age patient patientid patientsex
    patientage patientgender subject subjectid index width height year unnamed0 rownumber
    """
)
_STATE_NAMES = word_set(
    "state value confidence conf score probability prob present ispresent presence exists positive"
)
FILE_ENDING = re.compile(
    r"\.(?:jpe?g|png|gif|bmp|tiff?|webp|heic|heif|avif|wav|mp[34]|flac|dcm|npy)$", re.IGNORECASE
)
"""The ending of a picture or a sound."""


_ORDERED = re.compile(
    r"(?:primary|secondary|tertiary|first|second|third|main|other)[\s_.-]+(.*)", re.IGNORECASE
)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.rpartition(".")[2].lower())


def image_candidates(names: Sequence[str]) -> list[str]:
    """Columns that hold image ids by their name: those of images, else those of ids."""
    images = [name for name in names if _plain(name) in _IMAGE or _plain(name).endswith("filename")]
    return images or [name for name in names if _plain(name) in _ID]


def is_label_name(name: str) -> bool:
    """Whether a column of this name is known to hold labels."""
    return _plain(name) in _LABELS or is_single_name(name)


def is_single_name(name: str) -> bool:
    """Whether a column of this name is known to hold one class a row, as in long tables."""
    return _plain(name) in _SINGLE


def is_state_name(name: str) -> bool:
    """Whether a column of this name says whether a pair is present."""
    return _plain(name) in _STATE_NAMES


def is_no_class(name: str) -> bool:
    """Whether a column of this name is known to be no class, even with zeros and ones in it."""
    return _plain(name) in _NEITHER


def names_a_column(cell: str) -> bool:
    """Whether a cell is the usual name of a column."""
    return bool(image_candidates([cell])) or is_label_name(cell)


def numbered_group(names: Sequence[str]) -> list[str]:
    """Columns that differ at most in a number or an order: ``Species``, ``Species 2``.

    Returns:
        The only such group of labels, empty if there is none.
    """
    groups: dict[tuple[bool, str], list[str]] = {}
    for name in names:
        ordered = _ORDERED.fullmatch(name.strip())
        numbered = re.fullmatch(r"(.*?)(?:[\s_.-]*\d{1,3})?", name.strip())
        word = (ordered or numbered or [""])[1]
        if word and is_label_name(word):
            plain = _plain(word).removesuffix("s") if ordered else word.strip().casefold()
            key = bool(ordered), plain
            groups.setdefault(key, []).append(name)
    several = [group for group in groups.values() if len(group) > 1]
    return several[0] if len(several) == 1 else []


PRESENT = frozenset(["1", "true", "yes", "y", "t", "x", "\u2713", "\u2714", "present"])
ZERO = frozenset(["0", "false", "no", "n", "f"])
EMPTY = frozenset(["", "nan", "na", "n/a", "null", "none", "<na>"])
MINUS_ONE = "-1"
SPREADSHEET_ERRORS = frozenset(
    ["#n/a", "#ref!", "#value!", "#name?", "#div/0!", "#null!", "#num!", "#n/d"]
)
NO_NAMES = frozenset(["-", "--", "\u2013", "\u2014", "?", ".", "n.a."])
"""What people write into a cell instead of a label."""
ANY = "*"
_STATE_OF = {state.name.lower(): state for state in State}
_STATES = tuple(_STATE_OF)
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)


def canonical(cell: str) -> str:
    """The text of a cell in lower case; numbers as they are usually written.

    Example:
        >>> canonical(" Yes"), canonical("-1.00"), canonical("0,5"), canonical("2%")
        ('yes', '-1', '0.5', '0.02')
    """
    text = cell.strip().lower()
    if not text or text[0] not in "+-.0123456789":
        return text
    plain = text.removesuffix("%")
    if _DECIMAL_COMMA.fullmatch(plain):  # as most of Europe writes decimals
        plain = plain.replace(",", ".")
    if not _NUMBER.fullmatch(plain):
        return text
    number = float(plain) / (100 if text.endswith("%") else 1)
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def count_values(counts: Mapping[str, int]) -> Counter[str]:
    """The counts of cells as counts of their canonical forms."""
    found: Counter[str] = Counter()
    for cell, count in counts.items():
        found[canonical(cell)] += count
    return found


def all_values(cells: Iterable[str], said: Mapping[str, str]) -> bool:
    """Whether cells are nothing but values that a class column may hold."""
    known = _VALUES | {*said}
    return ANY in known or all(canonical(cell) in known for cell in cells)


def cell_states(
    cells: Iterable[str], values: Iterable[tuple[str, str]], threshold: float | None
) -> dict[str, State | None]:
    """The state that each of some cells stands for; None if nothing says it."""
    known = dict(values)
    return {cell: _cell_state(canonical(cell), known, threshold) for cell in cells}


def _cell_state(word: str, known: Mapping[str, str], threshold: float | None) -> State | None:
    meaning = known.get(word)
    if meaning in _STATE_OF:
        return _STATE_OF[meaning]
    if threshold is not None and word and (number := number_in(word)) is not None:
        return State.PRESENT if number >= threshold else State.UNKNOWN
    if meaning == "empty" and "" in known:
        return _STATE_OF[known[""]]
    return _STATE_OF[known[ANY]] if ANY in known else None


def number_in(word: str) -> float | None:
    """The number that a text is, if it is one."""
    return float(word) if _NUMBER.fullmatch(word) else None


def parse_values(options: ReadOptions, path: Path) -> dict[str, str]:
    """What the user says that cells mean: ``2=absent,9=unknown``.

    Raises:
        AmbiguousInputError: The option is not a list of such pairs.
    """
    found = {}
    for part in [] if options.values is None else options.values.split(","):
        word, equals, state = part.rpartition("=")
        meaning = state.strip().lower()
        if not equals or not word.strip() or meaning not in (*_STATES, "empty", "label"):
            raise ask(
                path,
                f"--values must be pairs such as 2=absent,9=unknown, but got {part!r}. A cell can"
                f" be {', '.join(_STATES)}, or empty.",
                options,
                values="2=absent,9=unknown",
            )
        found[canonical(word)] = meaning
    return found


@dataclass
class ValueMeanings:
    """What the values of a table mean, as far as that is known.

    Attributes:
        values: Meaning of each word, a state.
        unlisted: State of pairs without a cell.
        questions: What is open.
    """

    values: dict[str, str]
    unlisted: State
    questions: list[Question] = field(default_factory=list)


_VALUES = PRESENT | ZERO | EMPTY | {MINUS_ONE, *_STATES}


def odd_words(
    words: Iterable[str], said: Mapping[str, str] | None = None, threshold: float | None = None
) -> list[str]:
    """Words in canonical form that are no values that a class column may hold."""
    known = _VALUES if said is None else _VALUES | {*said}
    odd = [] if ANY in known else [word for word in words if word not in known]
    return odd if threshold is None else [word for word in odd if number_in(word) is None]


def find_meanings(
    counts: Mapping[str, int],
    options: ReadOptions,
    said: Mapping[str, str],
    *,
    silent: bool = False,
    apart: bool = False,
    default_minus_one: State | None = None,
) -> ValueMeanings:
    """Say what every word means, or ask.

    Args:
        counts: How often each word occurs, in canonical form.
        options: What the user said of 0, -1 and empty cells.
        said: What the user said of other words.
        silent: Whether pairs exist that have no cell at all.
        apart: Whether ``--unlisted`` says something else: what pairs without a row are.
        default_minus_one: What -1 means by definition of the format.
    """
    zeros = {word: count for word, count in counts.items() if word in ZERO and word not in said}
    empties = {word: count for word, count in counts.items() if word in EMPTY and word not in said}
    minus = counts.get(MINUS_ONE, 0) if MINUS_ONE not in said else 0
    either = None if apart or (zeros and empties) else options.unlisted
    chosen = {
        "zero": options.zero or either,
        "empty": options.empty or either,
        "minus_one": options.minus_one
        or (None if default_minus_one is None else default_minus_one.name.lower()),
    }
    values = dict.fromkeys(sorted(PRESENT), "present")
    values.update({state: state for state in _STATES})
    for name, words in (("zero", sorted(ZERO)), ("empty", sorted(EMPTY)), ("minus_one", ["-1"])):
        answer = chosen[name]
        if answer is not None:
            values.update(dict.fromkeys(words, answer))
    values.update(said)
    first = [options.unlisted, options.empty, options.zero, chosen["minus_one"]]
    word = next((one for one in first if one in ("unknown", "absent")), "unknown")
    meanings = ValueMeanings(values, State.parse(word))
    seen = {"zero": zeros, "empty": empties, "minus_one": {"-1": minus} if minus else {}}
    open_ = {name: words for name, words in seen.items() if words and chosen[name] is None}
    if silent and not any(one for one in first[:3]):
        open_ = {**open_, "unlisted": {}}
    if open_:
        meanings.questions.append(
            _question(open_, bool(zeros and empties), bool(minus) or apart, options)
        )
    return meanings


def _question(
    open_: Mapping[str, Mapping[str, int]], both: bool, single: bool, options: ReadOptions
) -> Question:
    told = [
        f"{_word(word)} is in {pluralize(count, 'cell', 'cells')}"
        for words in open_.values()
        for word, count in words.items()
    ]
    if "unlisted" in open_:
        told.append("some classes have no column")
    likely = {"zero": "absent", "empty": "unknown", "minus_one": "unknown", "unlisted": "unknown"}
    answers = {name: likely[name] for name in open_}
    if {"zero", "empty"} & set(open_) and not both and not single:
        answers = {"unlisted": "unknown"}  # of one kind alone, most pairs were not looked at
    flags = " and ".join(f"--{name.replace('_', '-')}" for name in answers)
    alike = ""
    if both and options.unlisted:
        alike = " --unlisted cannot settle zeros and empty cells together."
    return Question(
        f"The file does not say what these mean: {', '.join(told)}. Absent (a person looked) or"
        f" unknown (nobody did)?{alike} Pass {flags}.",
        answers,
    )


def _word(word: str) -> str:
    return repr(word) if word else "an empty cell"


def odd_values_question(
    counts: Mapping[str, int],
    columns: Sequence[str],
    rows: Sequence[int],
    *,
    no_class: bool,
    votes: bool,
) -> Question:
    """The question about words in class columns that have no known meaning.

    Args:
        counts: How often each of these words occurs.
        columns: Columns that hold them.
        rows: Some rows in which they are.
        no_class: Whether these columns are likely no classes.
        votes: Whether numbers are more likely counts or confidences than codes.
    """
    words = sorted(counts, key=lambda word: -counts[word])
    shown = ", ".join(f"{word!r}" for word in words[:5])
    more = f" and {len(words) - 5} more" if len(words) > 5 else ""
    where = f"column {columns[0]!r}" if len(columns) == 1 else f"{len(columns)} columns"
    place = f" (row {', '.join(map(str, rows))})" if rows else ""
    numbers = [number_in(word) for word in words]
    if not no_class and all(number is not None for number in numbers):
        found = [number for number in numbers if number is not None]
        cut = 0.5 if any(0 < number < 1 for number in found) else 1
        codes = not votes and all(number == int(number) and 1 < number < 100 for number in found)
        text = (
            f"Class values in {where} hold {shown}{more}{place}. --label-threshold says from which"
            " number on a class is present (below it, unknown)"
        )
        if codes and len(words) <= 5:
            likely = ",".join(f"{word}=unknown" for word in sorted(words))
            return Question(f"{text}; --values says what each number means.", {"values": likely})
        return Question(f"{text}.", {"label_threshold": f"{cut:g}"})
    if no_class:
        return Question(
            f"{where[0].upper()}{where[1:]} holds {shown}{more}{place}, which is none of 1, 0, -1,"
            " yes, no, x and empty. Pass --ignore-columns if it is no class, --skip-rows if such a"
            " row is no image, --values to say what the cells mean, or correct them.",
            {"ignore_columns": ",".join(columns)},
        )
    likely = ",".join(f"{word}={_LIKELY.get(word, 'unknown')}" for word in words[:5])
    return Question(
        f"Class values in {where} hold {shown}{more}{place}. --values says what they mean, such as"
        " ja=present,nein=absent; * stands for all others.",
        {"values": likely},
    )


_LIKELY = {
    **dict.fromkeys(
        word_set("on ja oui si s\u00ed sim da positive pos + \u2611 \u2612"), "present"
    ),
    **dict.fromkeys(
        word_set("off nein non nee n\u00e3o negative neg - \u2610 \u2717 \u2718"), "absent"
    ),
}
"""Meanings to propose for words; of all others it is left open."""


def are_likely(words: Iterable[str]) -> bool:
    """Whether there is a meaning to propose for all of some words."""
    return _LIKELY.keys() >= {*words}
