"""Names by which columns are known: of images, of labels, of single classes, and of neither."""

from __future__ import annotations

import re
from collections.abc import Sequence

_IMAGE = frozenset(
    [
        "image",
        "images",
        "img",
        "imageid",
        "imgid",
        "imagename",
        "imgname",
        "imagefile",
        "imagefilename",
        "imagepath",
        "imgpath",
        "imageindex",
        "imageurl",
        "imageuri",
        "imageref",
        "filename",
        "filenames",
        "file",
        "files",
        "filepath",
        "path",
        "fname",
        "photo",
        "photoid",
        "photoname",
        "picture",
        "picturename",
        "pictureid",
        "video",
        "videoid",
        "ytid",
        "youtubeid",
        "clipid",
        "audio",
        "audiofilename",
        "sourcefile",
        "slicename",
        "patchid",
        "isicid",
        "url",
        "bild",
        "datei",
        "foto",
        "fichier",
        "imagen",
    ]
)
_ID = frozenset(
    [
        "id",
        "ids",
        "uid",
        "uuid",
        "guid",
        "key",
        "name",
        "docid",
        "documentid",
        "movieid",
        "itemid",
        "sampleid",
        "recordid",
        "commentid",
        "studyid",
        "ecgid",
        "tweetid",
        "pmid",
        "externalid",
        "index",
    ]
)
_LABELS = frozenset(
    [
        "label",
        "labels",
        "tag",
        "tags",
        "class",
        "classes",
        "category",
        "categories",
        "target",
        "targets",
        "genre",
        "genres",
        "findinglabels",
        "findinglabel",
        "labelnames",
        "labelids",
        "attributeids",
        "attributes",
        "attribute",
        "positivelabels",
        "topics",
        "topic",
        "emotions",
        "emotion",
        "classids",
        "categoryids",
        "keywords",
        "keyword",
        "meshterms",
        "genreids",
        "taglist",
        "labellist",
        "labelset",
        "multilabels",
        "gtlabel",
        "gtlabels",
        "species",
    ]
)
_SINGLE = frozenset(
    [
        "class",
        "classname",
        "labelname",
        "classid",
        "categoryid",
        "categoryname",
        "objectclass",
        "commonname",
        "scientificname",
        "speciesname",
        "taxon",
    ]
)
_NEITHER = frozenset(
    [
        "fold",
        "folds",
        "split",
        "splits",
        "sex",
        "gender",
        "age",
        "patient",
        "patientid",
        "patientsex",
        "patientage",
        "patientgender",
        "subject",
        "subjectid",
        "index",
        "width",
        "height",
        "year",
        "unnamed0",
        "rownumber",
    ]
)
_STATE = frozenset(["state", "value", "confidence", "score", "probability", "present"])
FILE_ENDING = re.compile(
    r"\.(?:jpe?g|png|gif|bmp|tiff?|webp|heic|heif|avif|wav|mp[34]|flac|dcm|npy)$", re.IGNORECASE
)
"""The ending of a picture or a sound."""


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
    return _plain(name) in _STATE


def is_no_class(name: str) -> bool:
    """Whether a column of this name is known to be no class, even with zeros and ones in it."""
    return _plain(name) in _NEITHER


def names_a_column(cell: str) -> bool:
    """Whether a cell is the usual name of a column."""
    return bool(image_candidates([cell])) or is_label_name(cell)


def numbered_group(names: Sequence[str]) -> list[str]:
    """Columns that differ only in a number or an order: ``Species 1``, ``Species 2``.

    Returns:
        The only such group of labels, empty if there is none.
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        found = re.fullmatch(r"(.*?)[\s_.-]*\d{1,3}", name.strip()) or re.fullmatch(
            r"(?:primary|secondary|tertiary|first|second|third|main|other)[\s_.-]+(.*)",
            name.strip(),
            re.IGNORECASE,
        )
        if found and found[1] and is_label_name(found[1]):
            groups.setdefault(_plain(found[1]).removesuffix("s"), []).append(name)
    several = [group for group in groups.values() if len(group) > 1]
    return several[0] if len(several) == 1 else []
