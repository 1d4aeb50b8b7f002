"""Label files in every format that is patched, and what two answers must do to their lines."""

from __future__ import annotations

from dataclasses import dataclass, field

from hilltop.audit.decisions.store import AnswerWord
from hilltop.data import ReadOptions

Said = tuple[str, str, AnswerWord]
ANSWERS: list[Said] = [("b.jpg", "dog", "present"), ("a.jpg", "cow", "absent")]


@dataclass
class Case:
    """A label file and what applying ANSWERS must do to its lines."""

    name: str
    format: str
    text: str
    lines: list[str]
    options: ReadOptions = field(default_factory=lambda: ReadOptions(unlisted="unknown"))
    absents: bool = True
    read_with: ReadOptions | None = None
    file: str = "labels.csv"


COCO = """{
  "info": {"year": 2014, "description": "Größe"},
  "images": [
    {"id": 7, "file_name": "a.jpg", "width": 640, "height": 1e2},
    {"id": 9, "file_name": "b.jpg", "flickr_url": "x"}
  ],
  "annotations": [
    {"id": 3, "image_id": 7, "category_id": 18, "bbox": [1.50, 2, 3, 4], "area": 12.0},
    {"id": 40, "image_id": 9, "category_id": 21, "bbox": [5, 6, 7, 8]}
  ],
  "categories": [{"id": 18, "name": "dog"}, {"id": 21, "name": "cow"}]
}
"""
NEW = (
    '{"id": 41, "image_id": 9, "category_id": 18, "iscrowd": 0, "area": 0,'
    ' "bbox": [0, 0, 0, 0], "segmentation": []}'
)
LVIS = COCO.replace('"width": 640', '"neg_category_ids": [], "width": 640').replace(
    '"flickr_url"', '"neg_category_ids": [], "flickr_url"'
)
TASKS = """[
 {
  "id": 5,
  "data": {
   "image": "b.jpg",
   "photographer": "Ü"
  },
  "annotations": [
   {
    "result": [
     {
      "value": {
       "choices": [
        "cow"
       ]
      },
      "from_name": "what",
      "to_name": "img",
      "type": "choices"
     }
    ]
   }
  ]
 },
 {"id": 6, "data": {"image": "a.jpg"}, "annotations": [{"result": [{"value": {"choices": ["dog"]},
   "from_name": "what", "to_name": "img", "type": "choices"}]}]}
]
"""
CASES = [
    Case(
        "long with states",
        "long",
        'image,class,state\na.jpg,dog,present\n"b.jpg",cow,present\n',
        ["+ b.jpg,dog,present\n", "+ a.jpg,cow,absent\n"],
    ),
    Case(
        "long without states and without a last line end",
        "long",
        "image,class\r\na.jpg,dog\r\nb.jpg,cow",
        [
            "- image,class\r\n", "+ image,class,state\r\n",
            "- a.jpg,dog\r\n", "+ a.jpg,dog,present\r\n",
            "- b.jpg,cow", "+ b.jpg,cow,present\r\n",
            "+ a.jpg,cow,absent\r\n", "+ b.jpg,dog,present\r\n",
        ],
    ),
    Case(
        "long with numbers for states",
        "long",
        "image,class,state\na.jpg,dog,1\nb.jpg,cow,1\n",
        ["+ a.jpg,cow,-1\n", "+ b.jpg,dog,1\n"],
        options=ReadOptions(unlisted="unknown", minus_one="absent"),
    ),
    Case(
        "open images",
        "openimages",
        "ImageID,Source,LabelName,Confidence\na.jpg,verification,dog,1\nb.jpg,human,cow,1\n",
        ["+ a.jpg,verification,cow,0\n", "+ b.jpg,verification,dog,1\n"],
        options=ReadOptions(),
    ),
    Case(
        "wide",
        "wide",
        "image,cow,dog\n'a.jpg,0,0\na.jpg,,1\nb.jpg,1,\n",
        ["- a.jpg,,1\n", "+ a.jpg,-1,1\n", "- b.jpg,1,\n", "+ b.jpg,1,1\n"],
        read_with=ReadOptions(unlisted="unknown", minus_one="absent"),
    ),
    Case(
        "wide where -1 means unknown",
        "wide",
        "image,cow,dog\na.jpg,-1,1.0\nb.jpg,1.0,-1\n",
        ["- b.jpg,1.0,-1\n", "+ b.jpg,1.0,1.0\n"],
        options=ReadOptions(unlisted="absent", minus_one="unknown"),
        absents=False,
    ),
    Case(
        "list column with an absent column",
        "list_column",
        "image,labels,note,absent\na.jpg,dog; pig,\"x, y\",\nb.jpg,cow,z,pig\n",
        [
            '- a.jpg,dog; pig,"x, y",\n', '+ a.jpg,dog; pig,"x, y",cow\n',
            "- b.jpg,cow,z,pig\n", "+ b.jpg,cow;dog,z,pig\n",
        ],
    ),
    Case(
        "list column as JSON text",
        "list_column",
        'image,labels,absent\na.jpg,"[""dog""]",\nb.jpg,"[""cow""]",\n',
        [
            '- a.jpg,"[""dog""]",\n', '+ a.jpg,"[""dog""]","[""cow""]"\n',
            '- b.jpg,"[""cow""]",\n', '+ b.jpg,"[""cow"", ""dog""]",\n',
        ],
    ),
    Case(
        "JSON lines",
        "list_column",
        '{"image":"a.jpg","labels":["dog"],"note":1.50}\n{"image": "b.jpg", "labels": ["cow"]}\n'
        '{"image":"c.jpg","labels":[]}\n',
        [
            '- {"image":"a.jpg","labels":["dog"],"note":1.50}\n',
            '+ {"image":"a.jpg","labels":["dog"],"note":1.5,"absent":["cow"]}\n',
            '- {"image": "b.jpg", "labels": ["cow"]}\n',
            '+ {"image": "b.jpg", "labels": ["cow", "dog"], "absent": []}\n',
            '- {"image":"c.jpg","labels":[]}\n',
            '+ {"image":"c.jpg","labels":[],"absent":[]}\n',
        ],
        file="labels.jsonl",
    ),
    Case(
        "hugging face metadata",
        "huggingface",
        '{"file_name": "a.jpg", "labels": ["dog"]}\n{"file_name": "b.jpg", "labels": ["cow"]}\n',
        [
            '- {"file_name": "a.jpg", "labels": ["dog"]}\n',
            '+ {"file_name": "a.jpg", "labels": ["dog"], "absent": ["cow"]}\n',
            '- {"file_name": "b.jpg", "labels": ["cow"]}\n',
            '+ {"file_name": "b.jpg", "labels": ["cow", "dog"], "absent": []}\n',
        ],
        file="metadata.jsonl",
    ),
    Case("coco", "coco", COCO, [
            '-     {"id": 40, "image_id": 9, "category_id": 21, "bbox": [5, 6, 7, 8]}\n',
            '+     {"id": 40, "image_id": 9, "category_id": 21, "bbox": [5, 6, 7, 8]},\n',
            f"+     {NEW}\n",
        ], absents=False, file="labels.json"),
    Case("lvis", "lvis", LVIS, [
            '-     {"id": 7, "file_name": "a.jpg", "neg_category_ids": [], "width": 640,'
            ' "height": 1e2},\n',
            '+     {"id": 7, "file_name": "a.jpg", "neg_category_ids": [21], "width": 640,'
            ' "height": 1e2},\n',
            '-     {"id": 40, "image_id": 9, "category_id": 21, "bbox": [5, 6, 7, 8]}\n',
            '+     {"id": 40, "image_id": 9, "category_id": 21, "bbox": [5, 6, 7, 8]},\n',
            f"+     {NEW}\n",
        ], options=ReadOptions(), file="labels.json"),
    Case("label studio", "label_studio", TASKS, [
            '-         "cow"\n', '+         "cow",\n', '+         "dog"\n',
        ], absents=False, file="labels.json"),
]  # fmt: skip
