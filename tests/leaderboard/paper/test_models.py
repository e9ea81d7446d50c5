"""What is known about models, and costs of published rows from logged tokens."""

from datetime import date

import pytest

from leaderboard.board.rows import published_row
from leaderboard.paper.models import PublishedCost, model_fields, read_costs, read_models
from leaderboard.paper.published import load_published_rows
from leaderboard.paper.published_files import PublishedDataError


@pytest.fixture(scope="module")
def rows():
    return {row.row_id: published_row(row) for row in load_published_rows()}


def test_a_cost_is_tokens_times_prices_for_1000_replies():
    cost = PublishedCost(
        "x", 4, 10, 2_000_000, 100_000, "m", 2.5, 10.0, "prices 1", date(2026, 1, 2), "yes", "", "log"
    )
    # 2 million at 2.50 and 0.1 million at 10 dollars are 6 dollars for 4 replies: 1,500 for 1,000
    found = cost.as_cost()
    assert found.pop("basis") == "log; m at the list prices of 2026-01-02 (prices 1)"
    assert found == {"usd_per_1000": 1500.0, "rows": 4, "of": 10, "is_at_least": False}


def test_webjudge_costs_are_lower_bounds_that_name_their_day_and_what_is_not_counted(rows):
    cost = rows["reported/webjudge-o4-mini"].cost
    # (2,453,829 x 1.10 + 203,708 x 4.40) / 1,000,000 = 3.5955 dollars for 499 replies
    assert cost["usd_per_1000"] == pytest.approx(3.5955 / 499 * 1000, abs=0.001)
    assert cost["is_at_least"]
    assert "2026-11-26" in cost["basis"]
    assert "Only the final call" in cost["basis"]


def test_every_cost_belongs_to_a_published_row_and_every_line_names_its_source(rows):
    assert read_costs().keys() <= rows.keys()
    assert all(cost.source for cost in read_costs().values())
    assert all(model.source and model.link for model in read_models().values())


def test_models_are_found_by_any_of_their_names_and_never_guessed(rows):
    assert model_fields("GPT-4o") == model_fields("openai/gpt-4o-2024-11-20")
    assert model_fields("GPT-4o")["weights"] == "closed"
    assert model_fields("somebody/gpt-4o-2024-11-20") == {}
    assert model_fields("") == {}
    assert rows["paper/nnetnav"].licence == "Llama 3.3 Community License"
    assert (rows["paper/rule-based"].maker, rows["paper/rule-based"].cost) == ("", None)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("a,,Maker,ajar,,https://a.example,s", "models.csv row 2, weights 'ajar'"),
        ("a,,Maker,open,,https://a.example,s,more", "models.csv row 2: more fields than columns; quote"),
        ("a,b;A,Maker,open,,https://a.example,s\nb,,M,open,,https://b.example,s", "b names an earlier model"),
    ],
)
def test_a_bad_line_is_named_with_file_row_and_field(tmp_path, line, problem):
    path = tmp_path / "models.csv"
    path.write_text(f"model,aliases,maker,weights,licence,link,source\n{line}\n", encoding="utf-8")
    with pytest.raises(PublishedDataError, match=problem):
        read_models(path)
