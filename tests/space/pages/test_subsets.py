"""Subsets of a suite chosen in Compare and among a judge's errors, alone and together with an agent."""

import pytest

from submissions.app import SubmissionsApp
from tests.space.conftest import shown_text
from tests.space.pages.conftest import page_at
from tests.support.space_app import local_client, public_service, send_three
from tests.support.submissions import settings_for, write_suite

FIRST, LAST = "half=first", "half=last"


@pytest.fixture(scope="module")
def judged(tmp_path_factory) -> tuple[SubmissionsApp, dict[str, str]]:
    """The small suite with its test runs in two halves of 15 with 5 successes each; see `send_three`."""
    folder = tmp_path_factory.mktemp("halves")
    suite = write_suite(folder)
    toml = (suite / "suite.toml").read_text()
    (suite / "suite.toml").write_text(toml.replace("[rules]", 'subsets = ["half"]\n[rules]'))
    header, *rows = (suite / "trajectories.csv").read_text().split()
    halves = ["first" if place < 15 else "last" for place in range(len(rows))]
    lines = [f"{row},{half}" for row, half in zip(rows, halves, strict=True)]
    (suite / "trajectories.csv").write_text("\n".join([f"{header},half", *lines]) + "\n")
    service = SubmissionsApp(settings_for(folder, folder / "state"))
    return service, send_three(service)


def test_judges_are_compared_on_a_subset(judged):
    service, ids = judged
    page = page_at(service, "/compare", judges=[ids["Beta"], ids["Gamma"]], subset=FIRST)
    text = shown_text(page)
    assert "Only the trajectories of a subset are compared, half: first." in text
    # Beta misses the first two of the 5 successes and has its four false alarms here: 3 of 7 are right.
    # Gamma always says yes: 5 of 15 are right. 3/7 - 5/15 = 9.5 points.
    assert "+9.5" in text and "42.9" in text and "33.3" in text
    assert 'value="half=first" selected' in page
    # In the other half Beta makes no error.
    other = page_at(service, "/compare", judges=[ids["Beta"], ids["Gamma"]], subset=LAST)
    assert "+66.7" in shown_text(other)


def test_an_example_and_an_unknown_subset_are_compared_too(judged):
    service, _ = judged
    assert "Choose two to five judges" in page_at(service, "/compare", subset=FIRST)
    assert "invalid value for subset" in shown_text(
        page_at(service, "/compare", status=422, subset="half=none")
    )


def test_errors_are_listed_by_subset_also_together_with_an_agent(judged):
    service, ids = judged
    client = local_client(service)

    def errors_of(**query) -> list[str]:
        found = client.get("/api/errors", params={"judge": ids["Gamma"], "split": "test", **query}).json()
        pages = range(2, found["pages"] + 1)
        more = [
            client.get(
                "/api/errors", params={"judge": ids["Gamma"], "split": "test", "page": page, **query}
            ).json()["errors"]
            for page in pages
        ]
        return [each["trajectory_id"] for errors in (found["errors"], *more) for each in errors]

    assert [len(errors_of(subset=name)) for name in ("", FIRST, LAST)] == [20, 10, 10]
    of_agent = [run for run in errors_of(subset=FIRST) if "/agent-a/" in run]
    assert 0 < len(of_agent) < 10 and errors_of(subset=FIRST, agent="agent-a") == of_agent
    page = client.get("/errors", params={"judge": ids["Gamma"], "split": "test", "subset": FIRST}).text
    assert '<option value="half=first" selected>half: first</option>' in page


def test_a_suite_without_subsets_offers_none(tmp_path):
    assert 'name="subset"' not in page_at(public_service(tmp_path), "/compare")
