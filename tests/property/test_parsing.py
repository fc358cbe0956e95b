"""Pages of any shape: bytes, tag soup and damaged pages all give a page, never an exception."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from webcrawl.core.parsing import ParsedPage, parse_page

URL = "http://example.org/dir/page.html"
PAGE = """<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>Title é</title><base href=/b/>
<meta name=robots content=noindex><meta http-equiv=refresh content="5; url=/next"><link rel=canonical href=/c>
<noscript><a href=n>n</a></noscript></head><body><nav><a href=/1>one</a> <a rel=nofollow href='2?x=1&y=2#z'>two</a>
<map><area href=3 alt=three></map><iframe src=//other.org/></iframe></nav><script>if (a < b) "</a>"</script>
<table><td><a href=mailto:a@b.c>m<pre>  p\n q</pre></table><template><a href=t></template><!-- c --></body></html>"""
TAGS = [
    *("<a href=", "<a href='", "</a>", "<area href=x>", "<iframe src=y>", "<base href=//>"),
    *("<frameset>", "<frame src=z>"),
    *("<title>", "</title>", "<noscript>", "</noscript>", "<noframes>", "<template>", "<template shadowrootmode=open>"),
    *("<svg>", "<math>", "<table>", "<td>", "<p>", "<b>", "</b>", "<pre>", "<textarea>", "<script>", "<plaintext>"),
    *("<!--", "-->", "<![CDATA[", "<?", "</", "<", ">", "'", '"', "=", "&", "&#xd800;", "&#0;", "\0", " ", "\n", "é"),
    *("<meta http-equiv=refresh content='1;url=", "<meta name=robots content=", "<link rel=canonical href=", "<html>"),
]
soups = st.lists(st.one_of(st.sampled_from(TAGS), st.text(max_size=5)), max_size=40).map("".join)
charsets = st.sampled_from([None, "utf-8", "latin1", "utf-16", "shift_jis", "gb18030", "iso-2022-jp", "nonsense"])


def check_page(page: ParsedPage) -> None:
    assert len(page.links) == len(page.anchors) == len(page.rels) == len(set(page.links))
    assert all(link.startswith(("http://", "https://")) and "#" not in link for link in page.links)
    assert page.base.startswith(("http://", "https://"))
    for text in (page.title, page.text, page.lang, page.description, page.robots, *page.anchors, *page.rels):
        assert text.encode("utf-8") is not None  # no surrogates
    assert all(anchor == " ".join(anchor.split(" ")).strip(" ") for anchor in page.anchors)


@given(st.binary(max_size=300), charsets)
def test_any_bytes_give_a_page(body: bytes, charset: str | None) -> None:
    check_page(parse_page(body, URL, charset))


@given(soups, charsets)
def test_tag_soup_gives_a_page(soup: str, charset: str | None) -> None:
    check_page(parse_page(soup.encode("utf-8", "surrogatepass"), URL, charset))


@given(
    st.lists(st.tuples(st.integers(0, len(PAGE)), st.integers(0, 30), st.sampled_from(TAGS)), min_size=1, max_size=6),
    st.sampled_from([None, "utf-8"]),
)
def test_a_damaged_page_gives_a_page(damages: list[tuple[int, int, str]], charset: str | None) -> None:
    html = PAGE
    for place, length, tag in damages:
        html = html[:place] + tag + html[place + length :]
    check_page(parse_page(html.encode(), URL, charset))


@given(st.integers(0, len(PAGE)))
def test_a_page_cut_anywhere_has_the_links_before_the_cut(end: int) -> None:
    whole, part = parse_page(PAGE.encode(), URL), parse_page(PAGE[:end].encode(), URL)
    check_page(part)
    if PAGE[:end].count("<a href=/1>"):
        assert "http://example.org/1" in set(whole.links) & set(part.links)


@given(st.lists(st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=8), max_size=20))
def test_links_come_in_order_and_once(names: list[str]) -> None:
    html = "".join(f"<a href='{name}'>{name}</a>\n" for name in names)
    page = parse_page(html.encode(), URL)
    assert page.anchors == list(dict.fromkeys(names))
    assert [link.rpartition("/")[2] for link in page.links] == page.anchors
