"""Names by which columns are known: of images, of labels, and of what is no class."""

from __future__ import annotations

import re
from collections.abc import Iterable

ROW_NUMBER = "row-number"
"""What ``--image-column`` is called where rows have no names: their numbers, from 0."""
IMAGE_NAMES = frozenset(
    ["image", "image_id", "imageid", "image_name", "file_name", "filename", "file", "id", "path"]
)
"""Names, in lower case, by which a column of image ids is known."""
_FURTHER_IMAGE_NAMES = frozenset(
    [
        "imagename",
        "imageindex",
        "imagepath",
        "imagefile",
        "imageurl",
        "imagefilename",
        "img",
        "imgid",
        "imgname",
        "imgpath",
        "filepath",
        "filenames",
        "uid",
        "uuid",
        "guid",
        "key",
        "name",
        "ytid",
        "videoid",
        "clipid",
        "audiofilename",
        "fname",
        "docid",
        "pmid",
        "documentid",
        "movieid",
        "itemid",
        "sampleid",
        "recordid",
        "commentid",
        "studyid",
        "slicename",
        "isicid",
        "sourcefile",
        "patchid",
        "photoid",
        "youtubeid",
        "ecgid",
        "tweetid",
        "imageref",
        "externalid",
        "sourceref",
        "rowdata",
        "imagegcsuri",
        "imageuri",
        "textgcsuri",
    ]
)
LABEL_NAMES = frozenset(["labels", "tags", "classes", "label", "categories"])
"""Names, in lower case, by which a column with all labels of an image is known."""
_FURTHER_LABEL_NAMES = frozenset(
    [
        "tag",
        "category",
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
        "meshterms",
        "meshmajor",
        "mesh",
        "predictionstring",
        "labelid",
        "tagstring",
        "genreids",
        "keyword",
        "tagslist",
        "taglist",
        "labellist",
        "gtlabel",
        "gtlabels",
        "hierarchicalsubject",
        "scpcodes",
        "ingredients",
        "labelset",
        "classificationannotations",
        "boundingboxannotations",
        "displayname",
        "multilabels",
    ]
)
_NO_CLASS_NAMES = frozenset(
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
        "subject",
        "subjectid",
        "index",
        "width",
        "height",
        "year",
        "rownumber",
        "unnamed0",
    ]
)


_CLASS_NAMES = frozenset(
    ["class", "classname", "labelname", "classid", "categoryid", "categoryname", "objectclass"]
)
_SPECIES_NAMES = frozenset(
    ["commonname", "scientificname", "vernacularname", "taxon", "taxonname", "originallabel"]
)
_RANKS = frozenset(["order", "family", "genus"])
_PLACES = frozenset(
    ["bbox", "box", "boxes", "bndbox", "rle", "encodedpixels", "segmentation", "mask", "polygon"]
)


PART_NAMES = frozenset(
    ["train", "training", "test", "val", "valid", "validation", "validate", "unassigned"]
)
"""Words, in lower case, by which parts of a data set are known."""


def is_place_name(name: str) -> bool:
    """Whether a column of this name says where something is: never what it is."""
    return _plain(name) in _PLACES


def is_image_name(name: str) -> bool:
    """Whether a column of this name is known to hold image ids."""
    inner = _inner(name)
    return inner.lower() in IMAGE_NAMES or _plain(inner) in _FURTHER_IMAGE_NAMES


def is_label_name(name: str) -> bool:
    """Whether a column of this name is known to hold all labels of an image."""
    inner = _inner(name)
    return inner.lower() in LABEL_NAMES or _plain(inner) in _FURTHER_LABEL_NAMES


def names_columns(cells: Iterable[str]) -> bool:
    """Whether one of a row's cells is the usual name of a column of images, and one of labels."""
    words = [cell.strip(' "\r') for cell in cells]
    return any(map(is_image_name, words)) and any(map(is_label_name, words))


def is_class_name(name: str) -> bool:
    """Whether a column of this name is known to hold one class a row, as in long tables."""
    return _plain(name) in _CLASS_NAMES


def is_species_name(name: str) -> bool:
    """Whether a column of this name says which animal or plant was seen, one a row."""
    plain = _plain(name)
    return plain in _SPECIES_NAMES or plain.endswith("species")


def is_rank_name(name: str) -> bool:
    """Whether a column of this name is a rank, so that one called "class" beside it is one, too."""
    return _plain(name) in _RANKS


def is_no_class_name(name: str) -> bool:
    """Whether a column of this name is known to be no class, even with zeros and ones in it."""
    plain = _plain(name)
    return plain in _NO_CLASS_NAMES or plain.removeprefix("patient") in _NO_CLASS_NAMES


def _inner(name: str) -> str:
    """The last part of a key within keys, such as ``tags`` in ``meta.tags``."""
    return name.rpartition(".")[2].strip()


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.lower())
