"""What a request's content type must say before its form is read.

The parser of forms decodes the names in a form as the request's ``charset`` tells it, and fails with an error
of ours over codecs such as ``punycode``; and it takes apart a body of nothing but ``&`` for seconds, for all
of which the server stands still.
"""

from typing import Final

from python_multipart.multipart import parse_options_header

TAKEN: Final = b"multipart/form-data"
FORM_BYTES: Final = 64_000
"""Room in a form for the fields and the boundaries beside the file; also the longest single field."""
CHARSETS: Final = (b"", b"utf-8", b"utf8", b"us-ascii")


def form_problem(content_type: str) -> str | None:
    """Why a body of this content type is not read as a form; None when it is."""
    kind, _ = parse_options_header(content_type)
    if kind != TAKEN:
        return "the form cannot be read: send it as multipart/form-data (curl -F file=@FILE)"
    return charset_problem(content_type)


def charset_problem(content_type: str) -> str | None:
    """Why the encoding that a form's content type names is not taken; None when it names none, or UTF-8."""
    kind, parameters = parse_options_header(content_type)
    if not kind.startswith(b"multipart/") or parameters.get(b"charset", b"").lower() in CHARSETS:
        return None
    return "the form cannot be read: write its names in UTF-8 and leave charset out of the content type"
