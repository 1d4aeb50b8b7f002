"""A page for every registered loss, written from its docstring, its options and its gradient."""

from __future__ import annotations

import importlib
import inspect
import io
import re
from typing import Any, get_type_hints

import matplotlib as mpl

from hilltop import losses
from hilltop.errors import HilltopError
from hilltop.losses import LOSSES, MultiLabelLoss
from hilltop.losses.catalogue import Common
from hilltop.losses.compose import check_separable
from hilltop.report.gradient_figures import draw_loss_gradients

SECTION = re.compile(
    r"^(Assumption|When to use|Args|Example|Reference|Note|Shape|Raises|Returns):$", re.MULTILINE
)
BLOCK = re.compile(r"^\.\. math::(?P<first>[^\n]*)(?P<rest>(?:\n +[^\n]*)*)", re.MULTILINE)
PACKAGE = re.compile(r"^::: (?P<package>hilltop[a-z_.]+)\n(?:    options:\n)?", re.MULTILINE)
ARGUMENT = re.compile(r"^(\w+): (.*(?:\n +.*)*)", re.MULTILINE)
MATH = ".. math::"
OVERVIEW = """---
hide: [toc]
---

# All losses

Every loss is called as `criterion(logits, targets)` and can replace
`torch.nn.BCEWithLogitsLoss`: see [In your own training loop](../training-loop.md).
[Choosing a loss](../choosing.md) says which one to take. A positive term $`\\ell^+`$ applies to
labelled entries and a negative term $`\\ell^-`$ to the others; p is the predicted probability.

| loss | unlabelled entries are | equation | paper |
|---|---|---|---|
"""
SHARED = (
    "Options that all losses made of terms share: `reduction` (`mean`, `sum`, `batchmean` or"
    " `none`), `class_weight` and `pos_weight` (one number, or one for each class),"
    " `label_smoothing`, `watch` (warn when training saturates) and `safe_start` (begin with"
    " cross-entropy, for losses that can saturate)."
)


def sections(described: object) -> dict[str, str]:
    """Parts of a docstring by their titles; what comes first has the title About."""
    pieces = SECTION.split(inspect.getdoc(described) or "")
    found = {"About": pieces[0]}
    for title, content in zip(pieces[1::2], pieces[2::2], strict=True):
        found[title] = inspect.cleandoc(content)
    return {title: content.strip() for title, content in found.items()}


def settings(name: str, arguments: str) -> str:
    """The options of a loss as a table, with their defaults."""
    meaning = {found[1]: " ".join(found[2].split()) for found in ARGUMENT.finditer(arguments)}
    parameters = inspect.signature(LOSSES.builder(name)).parameters.values()
    own = [item for item in parameters if item.kind is not item.VAR_KEYWORD]
    rows = [
        f"| `{item.name}` | `{item.default!r}` | {meaning.get(item.name, '')} |" for item in own
    ]
    table = "\n".join(["| option | default | meaning |", "|---|---|---|", *rows, ""])
    shared = set(get_type_hints(Common)) <= set(LOSSES.options(name))
    return (table if rows else "It has none of its own.\n") + (f"\n{SHARED}\n" if shared else "")


def parts_of(name: str) -> list[type]:
    """The classes that a loss is made of, those that say most of it first."""
    loss = LOSSES.build(name)
    found = [getattr(loss, part, None) for part in ("correction", "negative", "positive")]
    kinds = [type(part) for part in (found[0], loss, *found[1:]) if part is not None]
    return [kind for kind in kinds if kind is not MultiLabelLoss]


def detail(name: str) -> str:
    """What the class behind a loss says of itself."""
    kind = parts_of(name)[0]
    return f"From `{kind.__name__}`: {sections(kind)['About']}"


def reference(name: str) -> str | None:
    """Where the loss comes from: said by itself, or else by what it is made of."""
    said = (sections(item).get("Reference") for item in (LOSSES.builder(name), *parts_of(name)))
    return next((text for text in said if text), None)


def page(name: str, picture: bool) -> str:
    """The page of a loss as Markdown."""
    parts = sections(LOSSES.builder(name))
    summary, _, about = parts["About"].partition("\n")
    text = [f"# {name} {{#method-{name}}}", summary, about.strip()]
    if "When to use" in parts:
        text += ["## When to use it", parts["When to use"]]
    if MATH not in about:
        text += ["## How it works", detail(name)]
    if picture:
        text += [
            "## Gradient",
            f"![How hard {name} pushes labelled and unlabelled pairs]({name}.svg)",
            "How hard a pair is pushed towards its label, against the probability that the model"
            " gives it, at the end of training. Below zero, an unlabelled pair is taken for a"
            " label.",
        ]
    text += ["## Settings", settings(name, parts.get("Args", ""))]
    text += ["## Use", use(name)]
    ends = {"Note": parts.get("Note"), "Reference": reference(name)}
    text += [f"## {title}\n\n{said}" for title, said in ends.items() if said]
    return "\n\n".join(part for part in text if part) + "\n"


def use(name: str) -> str:
    """The lines that put the loss to use."""
    return (
        f"```python\nfrom hilltop.losses import {name}\n\ncriterion = {name}()\n```\n\n"
        "```sh\nhilltop train --labels labels.csv --unlisted unknown --features features.npz"
        f" --loss {name}\n```"
    )


def gradient_picture(name: str) -> bytes | None:
    """The gradient as SVG, if every pair stands for itself."""
    try:
        loss = check_separable(LOSSES.build(name))
    except HilltopError:
        return None
    target = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        draw_loss_gradients(loss, name).savefig(target, format="svg", metadata={"Date": None})
    return target.getvalue()


def equation(name: str) -> str:
    """The equation of a loss on lines that fit a cell of a table, or its summary without one."""
    found = BLOCK.search(sections(LOSSES.builder(name))["About"])
    if found is None:
        return LOSSES.summary(name)
    tex = " ".join(f"{found['first']} {found['rest']}".split()).replace("|", r"\vert ")
    parts = [part.strip(" ,") for part in tex.split(r"\qquad")]
    return "<br>".join(f"$`{part}`$" for part in parts)


def row(name: str) -> str:
    """The line of a loss in the table of all of them."""
    described = (LOSSES.builder(name), parts_of(name)[0]) if name != "auto" else ()
    said = (sections(item).get("Reference") for item in described)
    paper = " ".join(next((text for text in said if text), "").split())
    assumed = " ".join(sections(LOSSES.builder(name)).get("Assumption", "").split())
    assumed = assumed.removeprefix("Unlabelled entries are ").rstrip(".")
    return f"| [`{name}`]({name}.md) | {assumed} | {equation(name)} | {paper} |\n"


def overview(names: list[str]) -> str:
    """The first page: every loss in a row, with what it assumes, its equation and its paper."""
    return OVERVIEW + "".join(row(name) for name in names)


def on_config(config: Any) -> Any:
    """Put the table into the navigation, at its end; it links to the page of every loss."""
    config["nav"].append({"All losses": "methods/index.md"})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Write the pages and their pictures."""
    from mkdocs.structure.files import File

    for name in LOSSES:
        picture = gradient_picture(name)
        if picture is not None:
            files.append(File.generated(config, f"methods/{name}.svg", content=picture))
        content = page(name, picture is not None)
        files.append(File.generated(config, f"methods/{name}.md", content=content))
    index = File.generated(config, "methods/index.md", content=overview(list(LOSSES)))
    files.append(index)
    return files


def with_members(markdown: str) -> str:
    """Name the public members of every package on a page of the reference.

    A package lists them in its stub, from which mkdocstrings would not take them.
    """

    def named(found: re.Match[str]) -> str:
        package = importlib.import_module(found["package"])
        if not hasattr(package, "__path__"):
            return found[0]
        members = "".join(f"        - {name}\n" for name in package.__all__)
        return f"::: {found['package']}\n    options:\n      members:\n{members}"

    return PACKAGE.sub(named, markdown)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """List the members of packages, and losses that the package does not name one by one."""
    if not page.file.src_uri.startswith("reference/"):
        return markdown
    markdown = with_members(markdown + "\n")
    if page.file.src_uri != "reference/losses.md":
        return markdown
    found = (
        f"::: {LOSSES.builder(name).__module__}.{name}"
        for name in LOSSES
        if name not in losses.__all__
    )
    return "\n\n".join([markdown, *found])
