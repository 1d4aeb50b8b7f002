"""Draws small cluttered pictures of symbols: backgrounds, things, distractors, noise."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

Colour = tuple[int, int, int]

_GLYPH_PX = 96
_LETTERS = (
    "ABDEGHKMNQRSZaegkmrsz3578?&%"  # distractors: they look like things, but are not labelled
)


class Glyphs:
    """Symbols and distracting letters as masks, rendered once from the font of matplotlib."""

    def __init__(self, symbols: Sequence[str]) -> None:
        """Render ``symbols``, which must be in DejaVu Sans."""
        file = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
        font = ImageFont.truetype(str(file), _GLYPH_PX)
        self.things = [_mask(symbol, font) for symbol in symbols]
        self.letters = [_mask(letter, font) for letter in _LETTERS]


def draw_picture(
    glyphs: Glyphs, classes: Sequence[int], *, size: int, rng: np.random.Generator
) -> Image.Image:
    """Draw one picture that shows the things with the numbers ``classes``."""
    tone = rng.uniform(0.62, 0.97)
    picture = Image.fromarray(_background(size, tone, rng))
    for _ in range(rng.integers(0, 2)):
        letter = glyphs.letters[rng.integers(len(glyphs.letters))]
        _paste(picture, letter, _colour(tone, rng), rng, rng.uniform(0.16, 0.3), rng.random(2))
    for _ in range(rng.integers(0, 3)):
        _stroke(picture, _colour(tone, rng), rng)
    for number, place in zip(classes, _places(len(classes), rng), strict=True):
        share = rng.uniform(0.34, 0.5) * (1.1 if len(classes) < 3 else 0.9)
        _paste(picture, glyphs.things[number], _colour(tone, rng), rng, share, place)
    for _ in range(rng.integers(0, 3)):
        _stroke(picture, _colour(tone, rng), rng)
    noise = rng.normal(0, rng.uniform(2, 8), (size, size, 1))
    pixels = np.asarray(picture, dtype=np.float32) + noise
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def _mask(text: str, font: ImageFont.FreeTypeFont) -> Image.Image:
    """Render text in white on black, centred in a square that leaves room for any rotation."""
    left, top, right, bottom = font.getbbox(text)
    side = int(1.05 * np.hypot(right - left, bottom - top))
    mask = Image.new("L", (side, side))
    at = ((side - right - left) / 2, (side - bottom - top) / 2)
    ImageDraw.Draw(mask).text(at, text, fill=255, font=font)
    return mask


def _background(size: int, tone: float, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """A soft mottled surface: a few random colours near one tone, blown up smoothly."""
    coarse = [_shade(rng, tone + rng.uniform(-0.1, 0.1), 0.35) for _ in range(9)]
    patches = Image.fromarray(np.array(coarse, dtype=np.uint8).reshape(3, 3, 3))
    return np.asarray(patches.resize((size, size), Image.Resampling.BICUBIC))


def _shade(rng: np.random.Generator, lightness: float, saturation: float) -> Colour:
    light = float(np.clip(lightness, 0.04, 0.96))
    red, green, blue = colorsys.hls_to_rgb(rng.random(), light, saturation * rng.random())
    return int(255 * red), int(255 * green), int(255 * blue)


def _colour(tone: float, rng: np.random.Generator) -> Colour:
    """A colour that can be told from a background of lightness ``tone``."""
    return _shade(rng, tone - rng.uniform(0.35, 0.7), 1.0)


def _places(count: int, rng: np.random.Generator) -> Any:
    """Centres for things: in the cells of a jittered grid, so that they overlap only in part."""
    cells = 1 if count == 1 else 2 if count <= 4 else 3
    taken = rng.permutation(cells * cells)[:count]
    corners = np.stack([taken % cells, taken // cells], axis=1)
    spread = 0.7 / cells
    return 0.15 + spread * (corners + 0.5 + rng.uniform(-0.4, 0.4, (count, 2)))


def _paste(
    picture: Image.Image,
    mask: Image.Image,
    colour: Colour,
    rng: np.random.Generator,
    share: float,
    place: Any,
) -> None:
    """Draw a mask turned, sized to ``share`` of the picture, a little squeezed, around a place."""
    side = share * picture.width * 1.35  # masks leave room around the symbol
    angle = np.deg2rad(rng.normal(0, 18))
    scale = mask.width / side * np.exp(rng.normal(0, 0.1, 2))
    cosine, sine = np.cos(angle), np.sin(angle)
    turn = np.array([[cosine, sine], [-sine, cosine]]) * scale[:, None]
    box = int(side * 1.3)
    shift = mask.width / 2 - turn @ np.array([box / 2, box / 2])
    values = (*turn[0], shift[0], *turn[1], shift[1])
    # Reduced first where it shrinks a lot: bilinear sampling alone would lose thin lines.
    factor = max(1, int(min(scale)))
    source = mask.reduce(factor) if factor > 1 else mask
    stamp = source.transform(
        (box, box),
        Image.Transform.AFFINE,
        tuple(float(value) / factor for value in values),
        Image.Resampling.BILINEAR,
    )
    corner = (np.asarray(place) * picture.width - box / 2).astype(int)
    picture.paste(colour, (int(corner[0]), int(corner[1])), stamp)


def _stroke(picture: Image.Image, colour: Colour, rng: np.random.Generator) -> None:
    """Draw a line or an arc somewhere."""
    draw, size = ImageDraw.Draw(picture), picture.width
    width = int(rng.integers(1, max(2, size // 24) + 1))
    first, second = np.sort(rng.uniform(-0.1, 1.1, (2, 2)) * size, axis=0)
    box = [float(first[0]), float(first[1]), float(second[0]), float(second[1])]
    if rng.random() < 0.5:
        start = float(rng.uniform(0, 360))
        draw.arc(box, start, start + float(rng.uniform(60, 200)), fill=colour, width=width)
    elif rng.random() < 0.5:
        draw.line(box, fill=colour, width=width)
    else:
        draw.line([box[0], box[3], box[2], box[1]], fill=colour, width=width)
