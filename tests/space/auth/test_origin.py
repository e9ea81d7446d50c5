from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from space.auth.origin import is_same_origin, local_path

HERE = "https://ada-board.hf.space/sign-in"
HOSTS = {"ada-board.hf.space"}


@pytest.mark.parametrize("path", ["/", "/submit", "/compare?judges=a,b&x=%2F", "/judge?id=paper/a#b", "/é"])
def test_paths_of_this_site_are_kept(path):
    assert local_path(path) == path


@pytest.mark.parametrize(
    "wished",
    [
        None, "", "submit", "//evil.example", "///evil.example", "/\\evil.example", "\\\\evil.example",
        "https://evil.example/", "javascript:alert(1)", "/\t/evil.example", "/\n/evil.example",
        "/a\r\nSet-Cookie: x=1", " /submit", "/a b", "/\x00", "/" + "a" * 3_000, "/ok\\..\\evil",
    ],
)  # fmt: skip
def test_everything_else_leads_to_the_first_page(wished):
    assert local_path(wished) == "/"


@given(st.text(alphabet="/\\.:@?#%\t\n ehvil", max_size=12) | st.text(max_size=20))
def test_no_text_leads_to_another_site(text):
    for wished in (text, "/" + text, "//" + text):
        # Browsers drop tabs and line breaks and read a backslash as a slash.
        read = local_path(wished).replace("\\", "/")
        for mark in "\t\n\r":
            read = read.replace(mark, "")
        assert urlsplit(urljoin(HERE, read)).netloc == "ada-board.hf.space"


@pytest.mark.parametrize(
    ("headers", "is_own"),
    [
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "none"}, True),
        ({"sec-fetch-site": "same-site"}, False),
        ({"sec-fetch-site": "cross-site", "origin": "https://ada-board.hf.space"}, False),
        ({"origin": "https://ada-board.hf.space"}, True),
        ({"origin": "https://ADA-board.hf.space"}, True),
        ({"origin": "https://evil.example"}, False),
        ({"origin": "https://ada-board.hf.space.evil.example"}, False),
        ({"origin": "null"}, False),
        ({}, False),
    ],
)
def test_only_a_page_of_this_site_counts_as_our_own(headers, is_own):
    assert is_same_origin(headers, HOSTS) is is_own
