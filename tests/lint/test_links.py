"""What `make lint` says of links in the documentation (tools/links.py)."""

TOOL = "links.py"


def test_no_link_of_the_documentation_is_dead(judged):
    assert judged() == (0, ["links: 0 lead nowhere"])


def test_dead_links_are_named(judged, tmp_path):
    (tmp_path / "src/wire").mkdir(parents=True)
    (tmp_path / "src/wire/frame.hpp").touch()
    (tmp_path / "there.md").write_text("# The *first* heading, of `two`\n")
    (tmp_path / "page.md").write_text("[a](there.md) [b](there.md#the-first-heading-of-two) [c](https://example.org/x) `wire/frame.hpp`\n"
                                      "[d](gone.md) [e](there.md#gone) [f](#gone) `wire/gone.hpp`\n")
    status, lines = judged(tmp_path)
    assert status == 1
    assert lines == ["page.md: gone.md: no such file", "page.md: there.md#gone: no such heading", "page.md: #gone: no such heading",
                     "page.md: wire/gone.hpp: no such source", "links: 4 lead nowhere"]
