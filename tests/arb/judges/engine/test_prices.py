"""Prices: the shipped table, tables of one's own, overrides; unknown is never nothing."""

import csv
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.judges.engine import prices
from arb.judges.engine.prices import COLUMNS, Price, read_prices
from arb.judges.types import ModelSettings, OptionsError
from tests.support.judges import judges

KNOWN = read_prices()
SHIPPED = Path(prices.__file__).parent / "prices.csv"


def table(path: Path, *rows: str, header: str = ",".join(COLUMNS)) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def test_every_shipped_row_has_a_day_and_a_source_and_stands_there_once():
    with SHIPPED.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert (
        len(rows)
        == len({(row["provider"], row["model"].lower()) for row in rows})
        == len(prices._read_table(SHIPPED, []))
    )
    for row in rows:
        assert date(2026, 1, 1) <= date.fromisoformat(row["checked"]) and len(row["source"]) > 10, row
        assert 0 < float(row["input"]) <= float(row["output"]), row


def test_the_models_of_the_papers_judges_and_of_webjudge_have_a_price_where_one_is_paid():
    known = read_prices()
    defaults = {model for judge in judges().values() for model in getattr(judge, "models", {}).values()}
    paid = [model for model in defaults if model.startswith(("gpt", "o4", "anthropic/"))]
    assert len(paid) == 4
    for model in paid:
        assert known.of(ModelSettings(model, provider="openrouter" if "/" in model else "openai")), model


def test_gpt_4o_costs_two_and_a_half_dollars_in_and_ten_out_and_half_of_it_in_a_batch():
    price = read_prices().of(ModelSettings("gpt-4o-2024-11-20"))
    assert price.cost(1_000_000, 0) == 2.5
    assert price.cost(10_000, 1_000) == pytest.approx(0.035)  # 0.025 + 0.01
    assert price.cost(10_000, 1_000, is_batch=True) == pytest.approx(0.0175)


def test_cached_and_written_input_have_their_prices_and_without_one_that_of_input():
    price = Price(4.0, 20.0, cached_input=0.4, cache_write=5.0)
    # 600 x 4 + 300 x 0.4 + 100 x 5 + 50 x 20 = 2,400 + 120 + 500 + 1,000
    assert price.cost(1_000, 50, cached_tokens=300, written_tokens=100) == pytest.approx(4_020 / 1e6)
    assert Price(4.0, 20.0).cost(1_000, 0, cached_tokens=300, written_tokens=100) == pytest.approx(0.004)
    assert price.most(1_000, 50) == pytest.approx(6_000 / 1e6)  # all of it written into the cache: x 5


@given(
    st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**5), st.booleans()
)
def test_no_call_costs_more_than_the_most(input_tokens, cached, written, output, is_batch):
    for model in ("gpt-5.6-sol", "gpt-4o", "o4-mini"):
        price = KNOWN.of(ModelSettings(model))
        cost = price.cost(
            input_tokens, output, cached_tokens=cached, written_tokens=written, is_batch=is_batch
        )
        assert 0 <= cost <= price.most(input_tokens, output, is_batch=is_batch) * (1 + 1e-9)


def test_prices_are_those_of_the_package_and_say_so():
    """Against the package's own arithmetic, tiers and batches and all."""
    from genai_prices import Usage as TheirUsage
    from genai_prices import calc_price

    for provider, model in (
        ("openai", "gpt-5.6-sol"),
        ("anthropic", "claude-haiku-5-5"),
        ("openai", "gpt-4o"),
    ):
        for tokens in (100_000, 250_000, 280_000):
            for context in (None, {"processing": "batch"}):
                theirs = calc_price(
                    TheirUsage(input_tokens=tokens, cache_read_tokens=1_024, output_tokens=100),
                    model,
                    provider_id=provider,
                    price_context=context,
                )
                price = KNOWN.of(ModelSettings(model, provider=provider))
                ours = price.cost(tokens, 100, cached_tokens=1_024, is_batch=context is not None)
                assert ours == pytest.approx(float(theirs.total_price)), (model, tokens, context)
                assert price.source.startswith("genai-prices 0.") and provider in price.source


def test_only_what_the_package_does_not_know_is_in_the_shipped_table():
    for provider, model in prices._read_table(SHIPPED, []):
        assert prices._library_price(provider, model.lower()) is None
    found = read_prices().of(ModelSettings("Qwen/Qwen2.5-VL-72B-Instruct", provider="together"))
    assert (found.input, found.output) == (1.95, 8.0)
    assert "api.together.ai" in found.source


def test_the_facts_of_run_json_name_each_roles_price_and_its_source():
    models = {"judge": ModelSettings("gpt-4o"), "captioner": ModelSettings("x", provider="vllm")}
    facts = prices.price_facts(read_prices(None, ["gpt-4o=1,2,0.5"]), models)
    assert facts == {
        "captioner": None,
        "judge": {"model": "gpt-4o", "input": 1.0, "output": 2.0, "cached_input": 0.5, "source": "--price"},
    }


def test_a_long_prompt_costs_its_own_price():
    price = Price(1.0, 2.0, long_from=100, long=Price(10.0, 20.0))
    assert price.cost(100, 1_000_000) == pytest.approx(2.0001)
    assert price.cost(101, 1_000_000) == pytest.approx(20.00101)


@pytest.mark.parametrize(
    "model",
    [
        ModelSettings("nobody-knows"),
        ModelSettings("gpt-4o-2031-01-01"),  # a snapshot of its own price
        ModelSettings("gpt-4o", provider="vllm"),
        ModelSettings("meta-llama/Llama-3.3-70B-Instruct", provider="any", base_url="http://h:8000/v1"),
        ModelSettings("gpt-oss-120b", provider="any", base_url="http://127.0.0.1:8000/v1"),
    ],
)
def test_a_model_without_a_row_is_unknown(model):
    assert read_prices().of(model) is None


def test_an_address_of_a_known_provider_has_its_prices():
    model = ModelSettings("claude-sonnet-5", provider="any", base_url="https://api.anthropic.com/v1/")
    assert read_prices().of(model).input == 2.0


def test_overrides_go_over_tables_and_hold_wherever_the_model_is_asked(tmp_path):
    own = table(tmp_path / "own.csv", "openai,gpt-4o,7,8,2026-01-02,a contract")
    model = ModelSettings("gpt-4o")
    assert read_prices(own).of(model).input == 7.0
    over = read_prices(own, ["gpt-4o=1,2,0.5", "org/a=b=0,0"])
    assert (over.of(model).input, over.of(model).output, over.of(model).cached_input) == (1.0, 2.0, 0.5)
    assert over.of(ModelSettings("GPT-4o", provider="vllm")).input == 1.0
    assert over.of(ModelSettings("org/a=b", provider="any")).cost(10**9, 10**9) == 0.0  # said to be free


def test_every_mistake_is_named_with_its_line_at_once(tmp_path):
    own = table(
        tmp_path / "own.csv",
        "openai,a,cheap,8,2026-01-02,x",
        "openai,b,1,-8,2026-01-02,x",
        ",c,1,2,2026-01-02,x",
        "openai,d,1,2,soon,x,,,7",
    )
    with pytest.raises(OptionsError) as caught:
        read_prices(own, ["gpt-4o", "x=1", "y=1,nan", "=1,2"])
    said = str(caught.value)
    for part in ("line 2, input 'cheap'", "line 3, output '-8'", "line 4", "line 5, batch_share '7'"):
        assert part in said
    for part in (
        "line 5, checked 'soon'",
        "--price gpt-4o:",
        "--price x=1:",
        "--price y=1,nan",
        "--price =1,2",
    ):
        assert part in said


def test_a_table_without_its_columns_or_that_is_none_is_refused(tmp_path):
    with pytest.raises(OptionsError, match="has no column input, output, checked, source"):
        read_prices(table(tmp_path / "a.csv", header="provider,model"))
    with pytest.raises(OptionsError, match="unknown columns: colour"):
        read_prices(table(tmp_path / "b.csv", header=",".join(COLUMNS) + ",colour"))
    with pytest.raises(OptionsError, match=r"nowhere\.csv cannot be read"):
        read_prices(tmp_path / "nowhere.csv")
    (tmp_path / "c.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(OptionsError, match=r"c\.csv is not UTF-8 text"):
        read_prices(tmp_path / "c.csv")


@given(st.text(max_size=40))
def test_any_override_is_a_price_or_is_refused(text):
    try:
        read = read_prices(None, [text])
    except OptionsError:
        return
    model = ModelSettings(text.rpartition("=")[0].strip())
    assert read.of(model).cost(1, 1) >= 0
