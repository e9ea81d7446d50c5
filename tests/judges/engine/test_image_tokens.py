"""Tokens of pictures: the examples that the providers publish, and bounds that hold for any size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.engine.image_tokens import image_rule, patch_tokens


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


def test_openais_patches_of_a_large_picture_are_scaled_as_in_its_example():
    assert patch_tokens(1.0, 1536, 1800, 2400, "auto") == 1452  # 33 x 44


def test_large_pictures_are_scaled_down_by_claude_and_less_by_its_newer_models():
    assert image_rule("claude-opus-4-6").expected(4000, 3000, "auto") <= 1568
    assert 4000 < image_rule("claude-opus-4-7").expected(4000, 3000, "auto") <= 4784


def test_a_model_that_nobody_knows_gets_a_guess_that_says_so():
    assert "unknown" in image_rule("osunlp/WebJudge-7B").name
    assert "unknown" in image_rule("meta-llama/Llama-3.3-70B-Instruct").name


@given(
    model=st.sampled_from(
        [
            "gpt-4o",
            "gpt-4o-mini",
            "gpt-4.1-mini",
            "o4-mini",
            "gpt-5-mini",
            "gpt-5.4",
            "gpt-5.5",
            "claude-3.7-sonnet",
            "claude-opus-5",
            "qwen2.5-vl-72b",
            "qwen3-vl-8b",
            "llama-4-scout",
            "who-knows",
        ]
    ),
    width=st.integers(1, 8000),
    height=st.integers(1, 8000),
    detail=st.sampled_from(["auto", "low", "high"]),
)
def test_the_most_is_never_less_than_what_is_expected(model, width, height, detail):
    rule = image_rule(model)
    assert 0 < rule.expected(width, height, detail) <= rule.at_most(width, height, detail)
