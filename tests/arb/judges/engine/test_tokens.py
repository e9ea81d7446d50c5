"""Tokens of pictures: the examples that the providers publish, and bounds that hold for any size.

Counting tokens: with a tokenizer where there is one, by a stated rule where not, and never too few.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.judges.engine.tokens import (
    ESTIMATE,
    PER_CALL,
    PER_MESSAGE,
    TokenCounters,
    estimate,
    image_rule,
    token_ceiling,
    word_ceiling,
)
from arb.judges.types import Image, Message, ModelSettings, OptionsError
from tests.support.judges import image
from tests.support.tokenizers import train_tokenizer


@pytest.mark.parametrize(
    ("model", "width", "height", "detail", "tokens"),
    [
        # OpenAI's own examples. 1024 x 1024 -> 768 x 768: 4 tiles, 85 + 4 x 170
        ("gpt-4o-2024-11-20", 1024, 1024, "high", 765),
        # 2048 x 4096 -> 1024 x 2048 -> 768 x 1536: 6 tiles, 85 + 6 x 170
        ("gpt-4o-2024-11-20", 2048, 4096, "auto", 1105),
        ("gpt-4o-2024-11-20", 4096, 8192, "low", 85),
        ("openai/gpt-4o-mini", 1024, 1024, "auto", 25501),  # 2833 + 4 x 5667
        ("gpt-4.1", 512, 512, "auto", 255),
        # 32 x 32 squares: 1024, and 1452 of 1800 x 2400 scaled to 1056 x 1408; times the model's factor
        ("gpt-4.1-mini", 1024, 1024, "auto", 1659),  # ceil(1024 x 1.62)
        ("o4-mini-2025-04-16", 1800, 2400, "auto", 2498),  # ceil(1452 x 1.72)
        ("o3", 1024, 1024, "high", 675),  # 75 + 4 x 150
        ("gpt-5", 1024, 1024, "high", 630),  # 70 + 4 x 140
        # Anthropic: 28 x 28 squares; 36 x 36
        ("anthropic/claude-3.7-sonnet", 1000, 1000, "auto", 1296),
        ("claude-3-7-sonnet-20250219", 200, 200, "auto", 64),
        # Qwen: 1280 x 720 -> 1288 x 728 (46 x 26 squares of 28), and two marks
        ("Qwen/Qwen2.5-VL-72B-Instruct", 1280, 720, "auto", 1198),
        ("qwen/qwen3-vl-8b-instruct", 1280, 720, "auto", 882),  # 40 x 22 squares of 32, and two
    ],
)
def test_pictures_cost_what_the_provider_says(model, width, height, detail, tokens):
    assert image_rule(model).expected(width, height, detail) == tokens


def test_large_pictures_are_scaled_down_by_claude_and_less_by_its_newer_models():
    assert image_rule("claude-opus-4-6").expected(4000, 3000, "auto") <= 1568
    assert 4000 < image_rule("claude-opus-4-7").expected(4000, 3000, "auto") <= 4784


def test_a_model_that_nobody_knows_gets_a_guess_that_says_so():
    assert "unknown" in image_rule("osunlp/WebJudge-7B").name
    assert "unknown" in image_rule("meta-llama/Llama-3.3-70B-Instruct").name


MODELS = (
    "gpt-4o", "gpt-4o-mini", "gpt-4.1-mini", "o4-mini", "gpt-5-mini", "gpt-5.4", "gpt-5.5",
    "claude-3.7-sonnet", "claude-opus-5", "qwen2.5-vl-72b", "qwen3-vl-8b", "llama-4-scout", "who-knows",
)  # fmt: skip


@given(
    model=st.sampled_from(MODELS),
    width=st.integers(1, 8000),
    height=st.integers(1, 8000),
    detail=st.sampled_from(["auto", "low", "high"]),
)
def test_the_most_is_never_less_than_what_is_expected(model, width, height, detail):
    rule = image_rule(model)
    assert 0 < rule.expected(width, height, detail) <= rule.at_most(width, height, detail)


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(["the agent clicked the button", "a tree of a page with a button"], 300)


def test_the_estimate_counts_words_digits_marks_and_lines():
    assert estimate("") == 0
    assert estimate("the page") == 2
    assert estimate("international") == 2  # eight letters and five
    assert estimate("12345") == 2
    assert estimate("[a1]\n") == 5  # [ a 1 ] and the line
    assert estimate("häuser") == 3  # h, ä, user


def test_a_call_is_its_texts_its_pictures_and_what_stands_around_them(tokenizer, tmp_path):
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    messages = (Message("system", "the button"), Message("user", ("a page", image(), "a tree")))
    model = ModelSettings("gpt-4o")
    texts = sum(len(tokenizer.encode(text).ids) for text in ("the button", "a page", "a tree"))
    counted = TokenCounters(str(tmp_path)).expected(model, messages)
    assert counted == PER_CALL + 2 * PER_MESSAGE + texts + 255  # a picture of one tile: 85 + 170


@pytest.mark.parametrize("named", ["folder", "file"])
def test_a_tokenizer_is_named_by_its_folder_or_its_file(tokenizer, tmp_path, named):
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    counter = TokenCounters(str(tmp_path if named == "folder" else tmp_path / "tokenizer.json")).of(
        ModelSettings("whatever")
    )
    assert "tokenizer.json" in counter.name
    assert counter.count("the button") == len(tokenizer.encode("the button").ids)


def test_a_local_model_brings_its_own_tokenizer(tokenizer, tmp_path):
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert TokenCounters().of(ModelSettings(str(tmp_path), provider="vllm")) is not ESTIMATE


def test_a_model_fetched_before_is_counted_with_its_tokenizer(tokenizer, tmp_path, monkeypatch):
    fetched = tmp_path / "models--org--model"
    (fetched / "refs").mkdir(parents=True)
    (fetched / "refs/main").write_text("abc")
    (fetched / "snapshots/abc").mkdir(parents=True)
    tokenizer.save(str(fetched / "snapshots/abc/tokenizer.json"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert TokenCounters().of(ModelSettings("org/model", provider="vllm")) is not ESTIMATE
    assert TokenCounters().of(ModelSettings("org/other", provider="vllm")) is ESTIMATE


def test_a_tokenizer_that_is_none_is_refused(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    for bad in (str(tmp_path), str(tmp_path / "nowhere"), "org/not-fetched", "///"):
        with pytest.raises(OptionsError, match="--tokenizer"):
            TokenCounters(bad)


@pytest.mark.parametrize(
    ("text", "saved"),
    [
        ("The button is on the page", 1 + 3 + 2 + 2),  # Th-e, " button", " the", " page": half of 3, 7, 4, 5
        ("x" * 60, 0),
        (" " * 60, 0),
        ("\t\tlink  link", 2 + 2),  # tabs and double spaces are not saved
        ("aGVsbG8gd29ybGQhIFRoaXMgaXMgYmFzZTY0IQ==", 0),
        ("12345 [67] 8f14e45f", 0),
        ("кнопка на странице", 0),
    ],
)
def test_only_words_count_less_than_a_token_per_byte(text, saved):
    messages, model = (Message("user", text),), ModelSettings("m")
    assert token_ceiling(model, messages) - word_ceiling(model, messages) == saved


@given(st.lists(st.text(), min_size=1, max_size=4), st.integers(0, 2))
def test_the_most_is_never_passed_by_a_tokenizer_of_bytes(texts, pictures):
    """A byte is a token at worst; a template adds a few around each message."""
    shown: list[str | Image] = [*texts, *[image()] * pictures]
    messages = (Message("system", texts[0]), Message("user", tuple(shown)))
    worst = sum(len(text.encode("utf-8", "surrogatepass")) for text in (texts[0], *texts))
    model = ModelSettings("gpt-4o")
    assert token_ceiling(model, messages) >= worst + 255 * pictures + 2 * 12 + 64
    assert token_ceiling(model, messages) >= TokenCounters().expected(
        ModelSettings("gpt-4o", provider="any"), messages
    )
