"""What pictures are drawn on: a figure without global state, in colours all can tell apart."""

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import wrap
from threading import RLock
from typing import Any

from ..errors import InputError, MissingExtraError
from .words import clean

BLUE, RED, GREY, PALE, INK = "#0072b2", "#d55e00", "#6b6b6b", "#d0d0d0", "#222222"
"""After Okabe and Ito 2008, "Color Universal Design"."""

LINE, EDGE = 0.21, 0.15
"""Height of a line of text and the empty edge, in inches."""

FORMATS = (".svg", ".png", ".pdf")

_STYLE = {
    "font.size": 9.0,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "text.parse_math": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "dspy_rerank",
}


_LOCK = RLock()

_FURTHER = (
    "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans CJK KR", "WenQuanYi Micro Hei",
    "Hiragino Sans", "PingFang SC", "Apple SD Gothic Neo", "Yu Gothic", "Microsoft YaHei",
    "Malgun Gothic", "Noto Sans Devanagari", "Noto Sans Thai", "Nirmala UI", "Arial Unicode MS",
    "Noto Emoji", "Segoe UI Emoji", "Segoe UI Symbol",
)  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class Picture:
    """A picture, shown by notebooks.

    A sign that no installed font has is a box in PNG and PDF; in SVG the viewer's fonts serve.

    Attributes:
        figure: The matplotlib figure, for changes of your own.
        title: What it shows, in words.
    """

    figure: Any
    title: str

    def __repr__(self) -> str:
        width, height = self.figure.get_size_inches()
        return f"<Picture {self.title!r}, {width:.1f} x {height:.1f} inches>"

    def save(self, path: str | Path) -> Path:
        """Write the picture as the file's ending says: ``.svg``, ``.png`` or ``.pdf``.

        Raises:
            InputError: Another ending.
        """
        target = Path(path)
        if target.suffix.lower() not in FORMATS:
            raise InputError(f"{target.name} does not end in one of {', '.join(FORMATS)}")
        target.write_bytes(self._rendered(target.suffix[1:].lower()))
        return target

    def to_svg(self) -> str:
        """SVG whose texts stay texts; the same figure gives the same bytes."""
        return self._rendered("svg").decode()

    def to_png(self, dpi: int = 144) -> bytes:
        """PNG, at so many dots an inch."""
        return self._rendered("png", dpi)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        width, height = (round(96 * inches) for inches in self.figure.get_size_inches())
        return self.to_png(), {"width": width, "height": height}

    def _rendered(self, kind: str, dpi: int = 144) -> bytes:
        into = io.BytesIO()
        undated = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
        with styled(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from")
            self.figure.savefig(into, format=kind, dpi=dpi, metadata=undated[kind])
        return into.getvalue()


@contextmanager
def styled() -> Iterator[None]:
    """Our style within, whatever the user's own is; one thread at a time, as styles are global.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        from matplotlib import style
    except ImportError:
        raise MissingExtraError(
            "pictures need matplotlib: pip install 'dspy-rerank[plot]'"
        ) from None
    with _LOCK, style.context(["default", {**_STYLE, "font.family": _fonts()}]):
        yield


@cache
def _fonts() -> list[str]:
    """The font of matplotlib itself, then those installed that know further writing systems."""
    from matplotlib.font_manager import fontManager

    installed = set(fontManager.get_font_names())
    return ["DejaVu Sans", *(name for name in _FURTHER if name in installed)]


class Canvas:
    """A figure measured in inches, with its headings.

    Args:
        title: In bold, at most two lines.
        notes: One line each, below the title.
        alarm: In red, below the notes, at most two lines; empty where all is well.
        width: Of the figure.
        height: Of what is drawn below the headings.
    """

    def __init__(
        self, title: str, notes: Sequence[str] = (), alarm: str = "", *, width: float, height: float
    ):
        from matplotlib.figure import Figure

        signs = int((width - 2 * EDGE) * 12.5)
        lines = [(line, INK, "bold") for line in lines_of(title, int(signs * 0.82))]
        lines += [(clean(note, signs), GREY, "normal") for note in notes if note]
        lines += [(line, RED, "bold") for line in lines_of(alarm, int(signs * 0.82))]
        self.title = clean(title, 200)
        self.width = width
        self.height = height + len(lines) * LINE + 2 * EDGE
        self.figure = Figure(figsize=(self.width, self.height), facecolor="white")
        for row, (line, colour, weight) in enumerate(lines):
            top = 1 - (EDGE + row * LINE) / self.height
            self.figure.text(
                EDGE / width, top, line, color=colour, weight=weight, va="top", parse_math=False
            )

    def axes(self, left: float, bottom: float, width: float, height: float, **more: Any) -> Any:
        """Axes at a place, in inches from the lower left corner."""
        place = (left / self.width, bottom / self.height, width / self.width, height / self.height)
        return self.figure.add_axes(place, **more)

    def picture(self) -> Picture:
        """What was drawn."""
        return Picture(self.figure, self.title)


def lines_of(text: str, signs: int, most: int = 2) -> list[str]:
    """A text in so many lines at most, the last one cut."""
    lines = wrap(clean(text, 10 * signs), signs, break_long_words=True)
    if len(lines) > most:
        lines = [*lines[: most - 1], clean(" ".join(lines[most - 1 :]), signs)]
    return lines


def bare(axes: Any) -> None:
    """Axes without frame, ticks and ground, so that labels of others may reach into them."""
    axes.set_facecolor("none")
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)
