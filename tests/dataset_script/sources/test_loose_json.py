import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset_script.sources.loose_json import repair_json


@pytest.mark.parametrize(
    ("loose", "strict"),
    [
        (b'{"a":NaN}', b'{"a":null}'),
        (b"[NaN, -Infinity,Infinity]", b"[null, null,null]"),
        (b'{"a":"NaN","b":"x \\" Infinity"}', b'{"a":"NaN","b":"x \\" Infinity"}'),
        (b'{"NaN":-1,"b":[-2,NaN]}', b'{"NaN":-1,"b":[-2,null]}'),
        (b'"\\ud83c"', b'"\\ufffd"'),
        (b'"\\ud83c\\udf75"', b'"\\ud83c\\udf75"'),
        (b'"\\udf75\\uD83C"', b'"\\ufffd\\ufffd"'),
        (b'"\\\\ud83c"', b'"\\\\ud83c"'),  # a backslash and five letters: no escape of a character
        (b'"\\\\\\ud83c"', b'"\\\\\\ufffd"'),
        (b'"\\ud83c\\n\\udf75"', b'"\\ufffd\\n\\ufffd"'),
    ],
)
def test_only_the_offending_tokens_are_replaced(loose, strict):
    assert repair_json(loose) == strict


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters() | st.sampled_from('NaN-Infity"\\\ud83c\udf75\ud800\udfff')),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


def mended(value):
    """The value with null for what is no number, and whole characters, as Python reads it."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [mended(item) for item in value]
    return {mended(k): mended(v) for k, v in value.items()} if isinstance(value, dict) else value


@given(JSON)
def test_what_pythons_writer_makes_reads_the_same_but_for_what_is_put_right(value):
    assert json.loads(repair_json(json.dumps(value).encode())) == mended(value)


@given(st.binary(max_size=80))
def test_any_bytes_at_all_come_back_as_bytes(data):
    assert isinstance(repair_json(data), bytearray)


def test_a_document_of_many_megabytes_takes_a_moment():
    text = json.dumps([{"name": "link to \n a shop", "x": True, "y": 1.5}] * 200_000)[:-1] + ", NaN]"
    assert repair_json(text.encode()).endswith(b", null]")
