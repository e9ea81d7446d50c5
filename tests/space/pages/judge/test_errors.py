"""The error page: the queue, tags, their counts and comparison, and that hidden labels admit none of it."""

import csv
import html
import io
import re

import pytest

from arb.core.settings import Settings
from submissions.app import SubmissionsApp
from tests.space.conftest import shown_text, tags_and_attributes
from tests.support.space_app import (
    local_client,
    make_public,
    private_service,
    public_service,
    signed_in,
)
from tests.support.submissions import is_success, send, verdicts


@pytest.fixture
def service(tmp_path) -> SubmissionsApp:
    return public_service(tmp_path)


@pytest.fixture
def ids(service) -> dict[str, str]:
    """Alpha misses one success, Beta two and has four false alarms, Gamma has twenty; each says why."""
    made = (("Alpha", 1, 0), ("Beta", 2, 4), ("Gamma", 0, 20))
    return {
        judge: send(
            service,
            verdicts(service.suite, misses=misses, false_alarms=alarms, reasoning=f"{judge} is sure."),
            judge=judge,
        ).submission_id
        for judge, misses, alarms in made
    }


@pytest.fixture
def client(service):
    return local_client(service)


@pytest.fixture(scope="module")
def sample(tmp_path_factory) -> SubmissionsApp:
    settings = Settings(suite="sample", labels="none", state_dir=tmp_path_factory.mktemp("state"))
    return SubmissionsApp(settings)


def runs(service, success: bool) -> list[str]:
    every = service.suite.split("test")
    return [run.trajectory_id for place, run in enumerate(every) if is_success(place) == success]


def tag(client, service, judge, trajectory_id, name="ada", **said):
    body = {"judge": judge, "trajectory_id": trajectory_id, "category": "missed_instruction", **said}
    return client.post("/api/errors", json=body, headers=signed_in(service, name))


def test_the_queue_holds_a_judges_errors_the_most_telling_first(client, service, ids):
    text = shown_text(client.get("/errors", params={"judge": ids["Beta"]}).text)
    assert (
        "this judge says yes to 4 trajectories that should get a no, and no to 2 that should get a yes "
        "(success); 0 of these errors have a tag" in text
    )
    first_miss, second_miss = runs(service, True)[:2]
    # Others on its misses: Alpha misses the first too, Gamma none. On its false alarms Gamma errs as well.
    assert "The judge says no, the experts say yes." in text
    assert "2 of 2 other judges agree with the experts." in text
    assert text.index(second_miss) < text.index(first_miss) < text.index(runs(service, False)[0])


def test_one_kind_can_be_chosen_and_pages_are_short(client, service, ids):
    misses = client.get("/errors", params={"judge": ids["Beta"], "kind": "fn"}).text
    assert misses.count('<article class="item error"') == 2
    pages = [client.get("/errors", params={"judge": ids["Gamma"], "page": n}).text for n in (1, 2, 99)]
    assert [page.count('<article class="item error"') for page in pages] == [10, 10, 10]
    assert pages[1] == pages[2] != pages[0]


def test_one_benchmark_and_one_agent_can_be_chosen(client, service, ids):
    misses = [run for run in service.suite.split("test") if run.trajectory_id in runs(service, True)[:2]]
    for run in misses:
        where = {"benchmark": run.benchmark, "agent": run.agent}
        page = client.get("/errors", params={"judge": ids["Beta"], "kind": "fn", **where}).text
        here = [each for each in misses if (each.benchmark, each.agent) == (run.benchmark, run.agent)]
        assert page.count('<article class="item error"') == len(here)
        assert "on all benchmarks" in page and "of all agents" in page
    right = {"judge": ids["Beta"], "kind": "fn", "q": "no such words"}
    assert "The judge makes no such errors on test." in client.get("/errors", params=right).text


@pytest.mark.parametrize("name", ["benchmark", "agent", "tag", "subset"])
def test_a_filter_by_what_does_not_exist_is_refused_by_its_name(client, ids, name):
    query = {"judge": ids["Beta"], "split": "test", name: "zzz"}
    refused = client.get("/api/errors", params=query)
    assert (refused.status_code, refused.json()["detail"]) == (422, f"{name}: there is no such {name}")
    page = client.get("/errors", params=query)
    assert page.status_code == 422 and page.text.count('<article class="item error"') == 6
    assert f"an invalid value for {name}. The default is used instead." in shown_text(page.text)
    assert client.get("/errors", params={name: "zzz"}).status_code == 422


def test_without_trajectories_and_reasoning_errors_are_one_table_and_the_page_says_what_is_missing(
    client, service
):
    judge = send(service, verdicts(service.suite, misses=2, false_alarms=4)).submission_id
    page = client.get("/errors", params={"judge": judge}).text
    assert '<article class="item error"' not in page
    text = shown_text(page)
    assert "are not on this server" in text and "arb data build" in text
    assert all(trajectory_id in text for trajectory_id in runs(service, True)[:2])
    assert "only the verdict is known: the trajectory" in text


def test_the_judges_words_stand_beside_its_error(client, service):
    content = verdicts(service.suite, misses=1, reasoning="<think>The cart\nlooks empty.</think> No.")
    judge = send(service, content).submission_id
    assert "The cart\nlooks empty." in client.get("/errors", params={"judge": judge}).text


def test_tags_are_kept_counted_compared_and_exported(client, service, ids):
    beta, (first, second) = ids["Beta"], runs(service, True)[:2]
    assert tag(client, service, beta, first).json() == {
        "judge": beta, "trajectory_id": first, "category": "missed_instruction", "more": [], "lasts": True,
    }  # fmt: skip
    assert tag(client, service, beta, second, category="own", own="Wrong page!").status_code == 201
    assert tag(client, service, beta, first, name="bob", note="it never pays").status_code == 201
    assert tag(client, service, beta, second, name="bob").status_code == 201
    page = client.get("/errors", params={"judge": beta}).text
    text = shown_text(page)
    assert "2 of these errors have a tag" in text
    # Alike on 1 of 2. Ada has both kinds, Bob one: by chance (1 * 2 + 1 * 0) / 4 = 0.5 too, so kappa is 0.
    assert "ada and bob: 2 errors tagged by both, with the same kind in 50.0 %, kappa 0.00." in text
    assert "Wrong page" in text and "it never pays" in text
    rows = list(csv.DictReader(io.StringIO(client.get("/api/errors.csv", params={"judge": beta}).text)))
    assert [(row["tagger"], row["category"]) for row in rows] == [
        ("ada", "missed_instruction"), ("ada", "wrong_page"),
        ("bob", "missed_instruction"), ("bob", "missed_instruction"),
    ]  # fmt: skip
    assert client.get("/api/errors.csv", params={"judge": "another"}).text.count("\n") == 1


def listed(client, judge, **query):
    """Return the ids of the errors that REST lists, and check that the page counts as many."""
    body = client.get("/api/errors", params={"judge": judge, "split": "test", **query}).json()
    text = shown_text(client.get("/errors", params={"judge": judge, "split": "test", **query}).text)
    if query:
        assert f"{body['of']} error" in text
    return [error["trajectory_id"] for error in body["errors"]]


def test_an_error_may_have_several_tags_and_can_be_found_by_each(client, service, ids):
    beta, (first, second) = ids["Beta"], runs(service, True)[:2]
    more = "Misleading agent reasoning, Wrong page"
    assert tag(client, service, beta, first, more=more).json()["more"] == [
        "misleading_reasoning", "wrong_page"
    ]  # fmt: skip
    for name in ("missed_instruction", "misleading_reasoning", "wrong_page"):
        assert listed(client, beta, tag=name) == [first]
    assert second in listed(client, beta, tag="untagged")
    assert first not in listed(client, beta, tag="untagged")
    rows = list(csv.DictReader(io.StringIO(client.get("/api/errors.csv", params={"judge": beta}).text)))
    assert [row["category"] for row in rows] == ["misleading_reasoning", "missed_instruction", "wrong_page"]
    assert "more" not in rows[0]
    tag(client, service, beta, first)  # replaces all three
    assert listed(client, beta, tag="wrong_page") == []
    assert tag(client, service, beta, first, more="a, b, c, d, e, f").status_code == 422


def test_a_signed_in_reader_does_not_find_tags_that_it_may_not_see(client, service, ids):
    beta, first = ids["Beta"], runs(service, True)[0]
    tag(client, service, beta, first)
    query = {"judge": beta, "split": "test", "tag": "missed_instruction"}
    assert client.get("/api/errors", params=query, headers=signed_in(service, "bob")).json()["of"] == 0


def test_errors_where_another_judge_is_right_are_listed(client, service, ids):
    first, second = runs(service, True)[:2]
    # Alpha misses the first too, and is right on the second and on Beta's four false alarms.
    assert first not in listed(client, ids["Beta"], right=ids["Alpha"])
    assert second in listed(client, ids["Beta"], right=ids["Alpha"])
    assert len(listed(client, ids["Beta"], right=ids["Alpha"])) == 5
    # Gamma says yes to everything, so it is right on both misses and wrong on the false alarms.
    assert set(listed(client, ids["Beta"], right=ids["Gamma"])) == {first, second}
    assert (
        client.get("/api/errors", params={"judge": ids["Beta"], "split": "test", "right": "x"}).status_code
        == 404
    )


def test_the_search_finds_words_of_the_reasoning_whatever_their_case(client, service, ids):
    assert len(listed(client, ids["Beta"], q="BETA IS")) == 6
    assert listed(client, ids["Beta"], q="alpha") == []
    page = client.get("/errors", params={"judge": ids["Beta"], "q": "beta", "kind": "fn"}).text
    assert "q=beta" in html.unescape(page)  # other links of the page keep the search
    assert client.get("/errors", params={"judge": ids["Beta"], "q": "x" * 201}).status_code == 422


def test_a_page_with_an_invalid_filter_says_in_plain_words_what_is_valid(client, ids):
    def refusal(**choice) -> str:
        answer = client.get(
            "/errors", params={"judge": ids["Beta"], **choice}, headers={"accept": "text/html"}
        )
        assert answer.status_code == 422
        return shown_text(answer.text)

    assert "split: must be 'dev' or 'test'" in refusal(split="x")
    assert "page: must be a whole number" in refusal(page="x")
    assert "page: must be at least 1" in refusal(page=0)


def test_only_an_error_can_be_tagged_and_only_by_who_is_known(client, service, ids):
    right = runs(service, True)[5]
    assert tag(client, service, ids["Beta"], right).status_code == 404
    assert tag(client, service, "no-such-judge", runs(service, True)[0]).status_code == 404
    assert tag(client, service, ids["Beta"], "a/b/c").status_code == 404
    assert tag(client, service, ids["Beta"], runs(service, True)[0], category="own").status_code == 422
    body = {"judge": ids["Beta"], "trajectory_id": runs(service, True)[0], "category": "missed_instruction"}
    assert client.post("/api/errors", json=body).status_code == 401


def test_on_dev_the_judges_of_the_dataset_are_read(sample):
    client = local_client(sample)
    page = shown_text(client.get("/errors", params={"judge": "functional"}).text)
    # The rule-based judge of the sample: two successes that its rules call failures, no false alarm.
    assert "On dev, this judge says yes to 0 trajectories that should get a no, and no to 2 that" in page
    assert "sample-shop.4" in page
    assert (
        tag(client, sample, "functional", "sample-shop/ScriptedAgent-stubborn/sample-shop.4").status_code
        == 201
    )
    assert "1 of these errors has a tag" in shown_text(
        client.get("/errors", params={"judge": "functional"}).text
    )


@pytest.fixture
def private(tmp_path):
    service = private_service(tmp_path / "private")
    judge = send(service, verdicts(service.suite, misses=2, false_alarms=4)).submission_id
    make_public(service, [judge])
    return service, judge


@pytest.mark.parametrize("split", ["", "dev", "test"])
def test_hidden_test_labels_admit_no_queue(private, split):
    service, judge = private
    answer = local_client(service).get("/errors", params={"judge": judge, "split": split})
    assert answer.status_code == 404
    assert not any(run.trajectory_id in answer.text for run in service.suite.split("test"))


def test_hidden_test_labels_admit_no_tag_and_no_question_whether_there_is_an_error(private):
    service, judge = private
    client = local_client(service)
    answers = [tag(client, service, judge, run.trajectory_id) for run in service.suite.split("test")]
    assert {(answer.status_code, answer.text) for answer in answers} == {
        (403, '{"detail":"this suite hides its test labels; tag errors on dev"}')
    }


def test_a_judge_page_leads_to_its_errors_only_where_they_may_be_seen(service, ids, private):
    def links(service, judge) -> set[str]:
        page = local_client(service).get(f"/judge?id={judge}").text
        return {html.unescape(found) for found in re.findall(r'href="(/errors\?[^"]*)"', page)}

    found, beta = links(service, ids["Beta"]), ids["Beta"]
    assert f"/errors?judge={beta}" in found
    assert {f"/errors?judge={beta}&split=test&kind={kind}" for kind in ("fp", "fn")} <= found
    assert f"/errors?judge={beta}&split=test&kind=fp&agent=agent-a" in found
    assert links(*private) == set()


def test_hostile_notes_and_names_stay_text(client, service, ids, hostile):
    beta, run = ids["Beta"], runs(service, True)[0]
    tag(client, service, beta, run, note="calm")
    calm = tags_and_attributes(client.get("/errors", params={"judge": beta}).text)
    assert tag(client, service, beta, run, note=hostile).status_code == 201
    page = client.get("/errors", params={"judge": beta}).text
    assert tags_and_attributes(page) == calm
    assert hostile.strip() in shown_text(page)
    assert client.get("/errors", params={"judge": hostile}).status_code == 404


def test_without_a_judge_every_judge_is_listed_with_its_errors(client, service, ids):
    page = client.get("/errors").text
    for name, errors in (("Alpha", 1), ("Beta", 6), ("Gamma", 20)):
        assert f'>{name} (tree)</a></th><td class="number">{errors}</td><td class="number">0</td>' in page


def test_a_second_tagger_sees_the_tag_of_the_first_after_their_own(client, service, ids):
    """For readers whom nobody knows, tags are public; they cannot tag."""
    first, second = runs(service, True)[:2]
    tag(client, service, ids["Beta"], first, note="NOTE-OF-ADA")
    tag(client, service, ids["Beta"], second, note="ALSO-OF-ADA")

    def seen(name: str | None) -> list[str]:
        headers = signed_in(service, name) if name else {}
        pages = [
            client.get(path, headers=headers).text
            for path in (f"/errors?judge={ids['Beta']}", "/api/errors.csv")
        ]
        notes = ("NOTE-OF-ADA", "ALSO-OF-ADA")
        assert len({tuple(note in page for note in notes) for page in pages}) == 1
        return [note for note in notes if note in pages[0]]

    assert seen(None) == seen("ada") == ["NOTE-OF-ADA", "ALSO-OF-ADA"]
    assert seen("bob") == []
    tag(client, service, ids["Beta"], first, name="bob", category="misleading_reasoning")
    assert seen("bob") == ["NOTE-OF-ADA"]
    page = client.get("/errors", params={"judge": ids["Beta"]}, headers=signed_in(service, "eve")).text
    assert "2 tags by others. You see them once you have tagged this error yourself." in page
    assert first + ": " not in page  # where two people differ, their tags stand side by side
    assert first + ": " in client.get("/errors", params={"judge": ids["Beta"]}).text
