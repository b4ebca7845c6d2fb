"""Colours and markers of the figures and of the page.

A scheme has its colour everywhere, and papers' schemes that work the same way share it, dashed. People who
confuse red and green can tell the colours apart (after Okabe and Ito, darkened for paper, lightened for dark
screens), and each series has a marker of its own besides.
"""

from collections.abc import Sequence

Style = tuple[str, str]  # colour, marker

NAMES = (
    "fg",
    "muted",
    "grid",
    "surface",
    "plain",
    "blue",
    "vermilion",
    "green",
    "purple",
    "gold",
    "sky",
    "violet",
    "rust",
)

LIGHT = dict(
    zip(
        NAMES,
        (
            "#1c2128",
            "#57606a",
            "#d8dde3",
            "#ffffff",
            "#6e7781",
            "#0064ad",
            "#c8480c",
            "#00795a",
            "#9b4a83",
            "#977000",
            "#2b8fbd",
            "#5e4bb6",
            "#7a3e1d",
        ),
        strict=True,
    )
)
DARK = dict(
    zip(
        NAMES,
        (
            "#e6eaef",
            "#9aa4af",
            "#30363d",
            "#14181d",
            "#8b949e",
            "#58aef5",
            "#ff8f57",
            "#3cc79b",
            "#e08fc6",
            "#e0b341",
            "#8fd3f7",
            "#b3a1f5",
            "#d69a75",
        ),
        strict=True,
    )
)
# What a figure that goes into the page is drawn with; svg.py makes CSS variables of these.
SENTINELS = {name: f"#fe{i:02x}{i:02x}" for i, name in enumerate(NAMES, 1)}

_SCHEMES = {
    "plain": "plain",
    "mpisec": "blue",
    "wireguard": "vermilion",
    "ipsec": "green",
    "vxlan": "gold",
    "vxlan+ipsec": "purple",
}
_MARKERS = {"plain": "|", "mpisec": "o", "wireguard": "s", "ipsec": "D", "vxlan": "x", "vxlan+ipsec": "^"}
_LIBRARIES = {
    "boringssl": ("blue", "o"),
    "openssl": ("green", "D"),
    "ipsec-mb": ("vermilion", "s"),
    "ipp": ("purple", "^"),
    "sodium": ("gold", "v"),
    "libsodium": ("gold", "v"),
    "cryptopp": ("violet", "P"),
    "aegis": ("sky", "X"),
    "libaegis": ("sky", "X"),
}
_VARIANTS = ("sky", "violet", "rust")  # of MPIsec with other settings
_FREE_COLOURS = ("gold", "sky", "violet", "rust", "purple", "green", "vermilion")
_FREE_MARKERS = "vPX<>p*hd"


def of_scheme(scheme: str) -> Style | None:
    """(colour, marker) of a scheme or of a crypto library, None for one that has none of its own."""
    if scheme in _SCHEMES:
        return _SCHEMES[scheme], _MARKERS[scheme]
    return _LIBRARIES.get(scheme.lower())


def assign(schemes: Sequence[str]) -> list[Style]:
    """[(colour, marker)] for schemes on the same axes: their own, others in turn from what is left."""
    taken = {style[0] for scheme in schemes if (style := of_scheme(scheme))}
    free = [colour for colour in _FREE_COLOURS if colour not in taken] or list(_FREE_COLOURS)
    styles: list[Style] = []
    seen: set[Style] = set()
    others, variants = 0, 0
    for scheme in schemes:
        style = of_scheme(scheme)
        if scheme.startswith("mpisec "):
            style = (_VARIANTS[variants % len(_VARIANTS)], _FREE_MARKERS[variants % len(_FREE_MARKERS)])
            variants += 1
        elif style is None or style in seen:
            colour = style[0] if style else free[others % len(free)]
            style = (colour, _FREE_MARKERS[others % len(_FREE_MARKERS)])
            others += 1
        seen.add(style)
        styles.append(style)
    return styles


def css(theme: dict[str, str]) -> str:
    """The theme as declarations of CSS variables."""
    return " ".join(f"--{name}: {colour};" for name, colour in theme.items())
