# ruff: noqa: E501 (lines of files as they are)
"""Shapes in which label files are published: each small imitation is recognised and counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilltop.data import ReadOptions, State, read_labels

SHAPES: dict[str, tuple[str, str, tuple[int, int, int]]] = {
    "bars between findings, commas in the header": (
        "csv",
        "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y],\n"
        "00000001_000.png,Cardiomegaly,000,1,58,M,PA,2682,2749,0.143,0.143,\n"
        "00000001_001.png,Cardiomegaly|Emphysema,001,1,58,M,PA,2894,2729,0.143,0.143,\n"
        "00000002_000.png,No Finding,000,2,81,M,PA,2500,2048,0.171,0.171,\n"
        "00000003_000.png,Hernia|Infiltration,000,3,81,F,PA,2582,2991,0.143,0.143,\n",
        (4, 6, 5),
    ),
    "class numbers with blanks": (
        "csv",
        "Id,Target\n"
        "00070df0-bbc3-11e8-b2bc-ac1f6b6435d0,16 0\n"
        "000a6c98-bb9b-11e8-b2b9-ac1f6b6435d0,7 1 2 0\n"
        "000a9596-bbc4-11e8-b2bc-ac1f6b6435d0,5\n",
        (3, 7, 6),
    ),
    "attribute numbers": (
        "csv",
        "id,attribute_ids\n"
        "1000483014d91860,147 616 813\n"
        "1000fe2e667721fe,51 616 734 813\n"
        "1001614cb89646ee,776\n",
        (3, 8, 6),
    ),
    "lists as Python writes them, an index without a name": (
        "csv",
        ",ImageID,ImageDir,StudyDate_DICOM,Projection,Labels,LabelsLocalizations\n"
        "0,20536686640136348236148679891455886468_k6ga29.png,0,20140915,PA,\"['normal']\",\"[['normal']]\"\n"
        "1,135803415504923515076821959678074435083_fzis7d.png,0,20150914,L,\"['pleural effusion', 'cardiomegaly']\",\"[['pleural effusion', 'loc right']]\"\n"
        "2,113855343774216031107737439268243531979_3k951l.png,0,20150914,L,[],[]\n",
        (3, 3, 3),
    ),
    "quoted commas, two columns of labels, a split": (
        "csv",
        "fname,labels,mids,split\n"
        '64760,"Electric_guitar,Guitar,Plucked_string_instrument,Musical_instrument,Music","/m/02sgy,/m/0342h,/m/0fx80y,/m/04szw,/m/04rlf",train\n'
        '16399,"Electric_guitar,Guitar","/m/02sgy,/m/0342h",train\n'
        '16401,"Bark,Dog","/m/05tny_,/m/0bt9lr",val\n',
        (3, 9, 7),
    ),
    "a text with line breaks beside zeros and ones": (
        "csv",
        "id,comment_text,toxic,severe_toxic,obscene,threat,insult,identity_hate\n"
        '0000997932d777bf,"Explanation\n'
        'Why the edits made under my username, ""Hardcore"" were reverted?",0,0,0,0,0,0\n'
        '000103f0d9cfb60f,"D\'aww! He matches this background",0,0,0,0,0,0\n'
        '0002bcb3da6cb337,"no",1,1,1,0,1,0\n',
        (3, 4, 6),
    ),
    "no header, tabs, a text before the id": (
        "tsv",
        "My favourite food is anything.\t27\teebbqej\n"
        "Now if he does off himself\t27,2\ted00q6i\n"
        "WHY THE HECK\t2\teezlygj\n",
        (3, 4, 2),
    ),
    "titles, genres with bars": (
        "csv",
        "movieId,title,genres\n"
        "1,Toy Story (1995),Adventure|Animation|Children|Comedy|Fantasy\n"
        "2,Jumanji (1995),Adventure|Children|Fantasy\n"
        "3,Grumpier Old Men (1995),Comedy|Romance\n"
        "4,Nothing (2000),(no genres listed)\n",
        (4, 11, 7),
    ),
    "tags in angle brackets": (
        "csv",
        "Id,Title,Tags\n"
        "1,How do I,<c#><winforms>\n"
        "2,Why,<c#><type-conversion><opacity>\n"
        "3,What,<html>\n",
        (3, 6, 5),
    ),
    "one class a row beside run lengths": (
        "csv",
        "ImageId,ClassId,EncodedPixels\n"
        "0002cc93b.jpg,1,29102 12 29346 24\n"
        "0007a71bf.jpg,3,18661 28 18863 82\n"
        "0007a71bf.jpg,1,18661 28 18863 82\n",
        (2, 3, 2),
    ),
    "two pictures a row, keywords, ages": (
        "csv",
        "ID,Patient Age,Patient Sex,Left-Fundus,Right-Fundus,Left-Diagnostic Keywords,Right-Diagnostic Keywords,N,D,G,C,A,H,M,O\n"
        "0,69,Female,0_left.jpg,0_right.jpg,cataract,normal fundus,0,0,0,1,0,0,0,0\n"
        "1,57,Male,1_left.jpg,1_right.jpg,normal fundus,normal fundus,1,0,0,0,0,0,0,0\n"
        "2,42,Male,2_left.jpg,2_right.jpg,laser spot,moderate,0,1,0,0,0,0,0,1\n",
        (3, 4, 8),
    ),
    "numbers as ids": (
        "csv",
        "ID,Disease_Risk,DR,ARMD,MH\n1,1,1,0,0\n2,1,1,0,1\n3,0,0,0,0\n",
        (3, 5, 4),
    ),
    "decimals": (
        "csv",
        "image,MEL,NV,BCC,AK\nISIC_0000000,0.0,1.0,0.0,0.0\nISIC_0000001,0.0,1.0,0.0,1.0\n",
        (2, 3, 4),
    ),
    "tags as objects, on lines": (
        "json",
        '{"id":"1","md5":"d41","file_ext":"jpg","tags":[{"id":"1","name":"1girl","category":"0"},{"id":"2","name":"solo","category":"0"}]}\n'
        '{"id":"2","md5":"d42","file_ext":"png","tags":[{"id":"2","name":"solo","category":"0"}]}\n',
        (2, 3, 2),
    ),
    "labels as objects, in a list": (
        "json",
        '[{"name":"a.jpg","attributes":{"weather":"clear"},"labels":[{"category":"car","box2d":{"x1":1,"y1":1,"x2":4,"y2":5}},{"category":"person","box2d":{"x1":1,"y1":1,"x2":4,"y2":5}}]},{"name":"b.jpg","attributes":{},"labels":[{"category":"car","box2d":{"x1":1,"y1":1,"x2":4,"y2":5}}]}]\n',
        (2, 3, 2),
    ),
}
"""Ending, content, and the number of images, labels and classes."""


@pytest.mark.parametrize("shape", SHAPES)
def test_a_published_shape_is_recognised_and_counted(tmp_path: Path, shape: str) -> None:
    suffix, content, counts = SHAPES[shape]
    path = tmp_path / f"labels.{suffix}"
    path.write_text(content, encoding="utf-8")
    table = read_labels(path, options=ReadOptions(unlisted="unknown"))
    assert (len(table), table.count(State.PRESENT), len(table.classes)) == counts
