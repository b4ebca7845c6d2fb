"""A figure as an <svg> element: colours are CSS variables, ids its own, with words for those who do "
"not see it."""

import io
import re
from xml.etree import ElementTree

from matplotlib.figure import Figure

from mpisec_bench.report import palette
from mpisec_bench.report.drawing import Plot, draw

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_COLOURS = {sentinel: f"var(--{name})" for name, sentinel in palette.SENTINELS.items()}
_COLOUR = re.compile("|".join(_COLOURS))
_FONT = re.compile(r"font-family: [^;]+|'DejaVu Sans'[^;]*")


def written(figure: Figure, kind: str) -> bytes:
    """The figure's file as bytes; equal figures are equal files."""
    import matplotlib

    file = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "mpisec"}):
        figure.savefig(file, format=kind, dpi=160, metadata={"Date": None} if kind == "svg" else None)
    return file.getvalue()


def inline(plot: Plot, key: str, description: str) -> str:
    """The plot as markup; key begins every id in it, description is read out."""
    tree = ElementTree.fromstring(written(draw(plot, palette.SENTINELS), "svg"))
    _drop(tree, f"{{{_SVG}}}metadata")
    _drop(tree, f"{{{_SVG}}}style", f"{{{_SVG}}}defs")
    for element in tree.iter():
        for name, value in list(element.attrib.items()):
            element.set(name, _attribute(name, value, key))
        if f"{{{_XLINK}}}href" in element.attrib:
            element.set("href", element.attrib.pop(f"{{{_XLINK}}}href"))
    _name(tree, key, plot.title, description)
    ElementTree.register_namespace("", _SVG)
    return ElementTree.tostring(tree, encoding="unicode")


def _drop(tree: ElementTree.Element, tag: str, inside: str | None = None) -> None:
    for parent in [tree, *(tree.iter(inside) if inside else [])]:
        for child in parent.findall(tag):
            parent.remove(child)


def _attribute(name: str, value: str, key: str) -> str:
    if name == "id":
        return f"{key}-{value}"
    if name.endswith("href") and value.startswith("#"):
        return f"#{key}-{value[1:]}"
    value = value.replace("url(#", f"url(#{key}-")
    if name == "style":
        value = _FONT.sub(
            lambda match: "font-family: inherit" if match[0].startswith("font-family") else "var(--sans)",
            value,
        )
        value = _COLOUR.sub(lambda match: _COLOURS[match[0]], value)
    return value


def _name(tree: ElementTree.Element, key: str, title: str, description: str) -> None:
    for tag, text in (("desc", description), ("title", title)):
        element = ElementTree.Element(f"{{{_SVG}}}{tag}", {"id": f"{key}-{tag}"})
        element.text = text
        tree.insert(0, element)
    tree.set("role", "img")
    tree.set("aria-labelledby", f"{key}-title {key}-desc")
    for name in ("width", "height"):
        tree.attrib.pop(name, None)
