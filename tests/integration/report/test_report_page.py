"""The page in a browser: whole without a network, readable at any width, dark and light, on paper."""

import itertools

import pytest

_WIDTHS = (360, 768, 1280)

_FIGURES = """() => [...document.querySelectorAll('figure')].map(figure => {
  const svg = figure.querySelector('svg'), box = svg ? svg.getBoundingClientRect() : {width: 0, height: 0};
  const shapes = [...(svg ? svg.querySelectorAll('path, use') : [])].filter(shape => {
    const style = getComputedStyle(shape), size = shape.getBoundingClientRect();
    const seen = paint => paint !== 'none' && paint !== 'rgba(0, 0, 0, 0)';
    return size.width + size.height > 0 && (seen(style.stroke) || seen(style.fill)) && !shape.closest('defs');
  });
  const letters = [...(svg ? svg.querySelectorAll('text') : [])].map(text =>
    parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a);
  const words = svg ? (svg.getAttribute('aria-labelledby') || '').split(' ') : [];
  const labels = words.map(id => document.getElementById(id));
  const named = labels.length === 2 && labels.every(label => label && label.textContent.trim());
  return {id: figure.id, width: box.width, height: box.height, shapes: shapes.length,
          smallest: Math.min(...letters), texts: letters.length, named};
})"""

# Contrast of every text with what is behind it, by WCAG's formula.
_CONTRAST = """() => {
  const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const linear = v => v / 255 <= .03928 ? v / 255 / 12.92 : ((v / 255 + .055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => .2126 * linear(r) + .7152 * linear(g) + .0722 * linear(b);
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const bad = [];
  const all = 'p, li, a, td, th, dt, dd, h1, h2, h3, h4, pre, summary, small, .mark, text';
  for (const element of document.querySelectorAll(all)) {
    const style = getComputedStyle(element);
    const colour = parse(element.tagName === 'text' ? style.fill : style.color);
    const [a, b] = [light(colour), light(behind(element))].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    if (!(ratio >= 4.5)) bad.push(`${element.tagName} ${element.textContent.trim().slice(0, 30)}: ${ratio}`);
  }
  return bad;
}"""
_OUTSIDE = """() => [...document.querySelectorAll('body *')]
  .filter(element => !element.closest('.scroll, .unseen, .skip, svg'))
  .filter(element => element.getBoundingClientRect().right > innerWidth + 1)
  .map(element => element.outerHTML.slice(0, 80))"""
_OUTLINE = """() => {
  const style = getComputedStyle(document.activeElement);
  return [style.outlineStyle, parseFloat(style.outlineWidth)];
}"""
_SPOILT = """
body { color: #999 !important }
p { color: #bbb !important; min-width: 900px }
figure svg path, figure svg use { display: none }
figure svg { width: 40% !important }
"""
_BACKGROUND = "() => getComputedStyle(document.body).backgroundColor"
# Colours of the first figure's curves and the page behind them.
_CURVE = "() => getComputedStyle(document.querySelector('figure svg use')).fill"


@pytest.mark.parametrize("dark", [False, True])
def test_stands_alone_and_without_complaints(sample_page, look_at, dark):
    opened = look_at(sample_page, dark=dark)
    opened.page.wait_for_timeout(200)
    assert opened.console == []
    assert opened.requests == []


@pytest.mark.parametrize("width", _WIDTHS)
def test_every_figure_is_drawn_named_and_legible(sample_page, look_at, width):
    figures = look_at(sample_page, width).page.evaluate(_FIGURES)
    assert len(figures) >= 30
    for figure in figures:
        assert figure["width"] > 250, figure
        assert figure["height"] > 120, figure
        assert figure["shapes"] >= 5, figure
        assert figure["texts"] >= 4, figure
        assert figure["named"], figure
        assert figure["smallest"] >= 10, figure


@pytest.mark.parametrize("width", _WIDTHS)
def test_does_not_scroll_sideways(sample_page, look_at, width):
    page = look_at(sample_page, width).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(_OUTSIDE) == []


def test_wide_tables_scroll_in_themselves(sample_page, look_at):
    page = look_at(sample_page, 360).page
    assert page.locator("table").count() == page.locator(".scroll > table").count() > 0
    wider = (
        "() => [...document.querySelectorAll('.scroll')].some(one => one.scrollWidth > one.clientWidth + 1)"
    )
    assert page.evaluate(wider)


def test_dark_and_light_differ_and_both_can_be_read(sample_page, look_at):
    light, dark = (look_at(sample_page, dark=dark).page for dark in (False, True))
    assert light.evaluate(_BACKGROUND) == "rgb(255, 255, 255)"
    assert dark.evaluate(_BACKGROUND) != light.evaluate(_BACKGROUND)
    assert dark.evaluate(_CURVE) != light.evaluate(_CURVE)
    for page in (light, dark):
        assert page.evaluate(_CONTRAST) == []


def test_prints_light_even_from_a_dark_screen(sample_page, look_at):
    page = look_at(sample_page, 760, dark=True).page
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(_BACKGROUND) == "rgb(255, 255, 255)"
    assert page.evaluate(_CONTRAST) == []
    assert page.evaluate("getComputedStyle(document.querySelector('figure')).breakInside") == "avoid"
    assert page.evaluate("getComputedStyle(document.querySelector('.command')).display") != "none"
    assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    pdf = page.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 100_000


def test_links_ids_and_headings(sample_page, look_at):
    page = look_at(sample_page).page
    ids = page.evaluate("() => [...document.querySelectorAll('[id]')].map(element => element.id)")
    assert len(ids) == len(set(ids))
    links = page.evaluate(
        "() => [...document.querySelectorAll('[href]')].map(one => one.getAttribute('href'))"
    )
    inside = {link.removeprefix("#") for link in links if link != "data:,"}
    assert len(inside) > 100
    assert inside <= set(ids)
    levels = page.evaluate(
        "() => [...document.querySelectorAll('h1, h2, h3, h4')].map(one => +one.tagName[1])"
    )
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))


def test_keyboard_focus_can_be_seen(sample_page, look_at):
    page = look_at(sample_page).page
    for _ in range(4):
        page.keyboard.press("Tab")
        style = page.evaluate(_OUTLINE)
        assert style[0] != "none"
        assert style[1] >= 1


def test_every_figure_has_its_command(sample_page, look_at):
    page = look_at(sample_page).page
    commands = page.locator("figure pre.command").all_text_contents()
    assert len(commands) == page.locator("figure").count()
    assert all(command.startswith("mpisec ") for command in commands)
    page.locator("article pre.command").first.click()
    assert page.evaluate("getSelection().toString()").startswith("mpisec bench")


def test_marks_what_is_interrupted_or_in_user_space(sample_page, look_at):
    text = look_at(sample_page).page.inner_text("body")
    assert "interrupted run" in text
    assert "WireGuard (user space)" in text
    assert "do not read these ratios as the kernel’s" in text


def test_these_checks_can_fail(sample_page, look_at, tmp_path):
    """A page that is wide, pale, unnamed, empty and calls home is caught by each."""
    broken = sample_page.read_text()
    broken = broken.replace("default-src 'none'", "default-src *").replace(
        "</header>", '</header><img src="http://example.org/x.png">'
    )
    broken = broken.replace("</style>", _SPOILT + "</style>", 1)
    path = tmp_path / "broken.html"
    path.write_text(broken)
    opened = look_at(path, 360)
    opened.page.wait_for_timeout(200)
    assert opened.requests or opened.console
    assert opened.page.evaluate("document.documentElement.scrollWidth") > 360
    assert opened.page.evaluate(_CONTRAST)
    figures = opened.page.evaluate(_FIGURES)
    assert all(figure["shapes"] == 0 for figure in figures)
    assert min(figure["smallest"] for figure in figures) < 10
