"""The page My agent: runs are drawn from files and labelled on the page, which gives an estimate."""

import json
import re

import pytest

from arb.core.settings import Settings
from arb.core.suite import load_suite
from arb.core.suites.targets import default_targets
from leaderboard.success_rates.files import labels_of
from leaderboard.success_rates.runs import RunTexts, read_texts
from space.__main__ import _settings_of_source
from space.estimates import MOST_IN_PLACE
from space.pages.agent.own_agent import answers_with_keys
from submissions.app import SubmissionsApp
from tests.space.conftest import shown_text
from tests.space.pages.agent.test_success_rates import estimates_in
from tests.space.pages.conftest import page_at
from tests.support.crashing_logs import write_crashing_logs
from tests.support.space_app import local_client
from tests.support.submissions import assert_nothing_was_written, settings_for, write_suite


def csv_of(agent: str, n: int) -> bytes:
    """A row per run; every fourth is a success."""
    rows = [f"own/{agent}/{i},{'yes' if i % 4 == 0 else 'no'}" for i in range(n)]
    return "\n".join(["trajectory_id,success", *rows]).encode()


def own_files(agent: str = "a", n: int = 40) -> dict:
    """A form with a judge's verdicts and half as many labels."""
    return {"verdicts": ("my-judge.csv", csv_of(agent, n)), "labels": ("labels.csv", csv_of(agent, n // 2))}


def verdicts_of(agent: str = "my-agent", n: int = 40) -> dict:
    return {"verdicts": ("my-judge.csv", csv_of(agent, n))}


def drawn_in(html: str) -> list[str]:
    return re.findall(r'<li class="drawn-run" data-run="([^"]*)">', html)


def key_in(html: str) -> str:
    return re.search(r'name="drawn" value="([0-9a-f]+)"', html)[1]


@pytest.mark.parametrize("path", ["/my-agent", "/rates"])
def test_a_form_with_two_files_gives_the_page_with_their_estimate_and_keeps_nothing(service, path):
    answer = local_client(service).post(path, files=own_files("my-agent"))
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    ((name, cells),) = estimates_in(answer.text.partition('id="own-estimate"')[2]).items()
    assert (name, cells[0], cells[1], cells[3][:4]) == ("my-agent", "20 of 40", "25.0", "25.0")
    assert "how the labelled runs were chosen is not recorded" in shown_text(answer.text)
    assert_nothing_was_written(service)
    assert "20 of 40" not in page_at(service, "/my-agent")


def test_an_estimate_shows_the_intervals_on_these_runs_and_on_such_tasks_as_the_api_gives_them(service):
    client = local_client(service)
    page, api = (client.post(path, files=own_files("my-agent")) for path in ("/my-agent", "/api/estimate"))
    shown = estimates_in(page.text.partition('id="own-estimate"')[2])["my-agent"]
    (found,) = api.json()["agents"]
    for cell, name in zip(shown[2:4], ("labels_only", "assisted"), strict=True):
        rate = found[name]
        runs, tasks = ([f"{100 * end:.1f}" for end in rate[each]] for each in ("ci", "ci_on_tasks"))
        assert runs != tasks
        assert cell == (
            f"{100 * rate['rate']:.1f} these runs {' to '.join(runs)} such tasks {' to '.join(tasks)}"
        )
    assert (
        "on these runs and" in page.text
        and "how often does the agent succeed on tasks like these" in page.text
    )


def test_files_that_cannot_be_used_are_findings_on_the_page_and_markup_in_them_is_text(service, hostile):
    files = own_files(hostile.replace("/", "|"))
    client = local_client(service)
    answer = client.post("/my-agent", files=files)
    assert answer.status_code == 200
    assert "<script>alert" not in answer.text and "<img src=x" not in answer.text
    drawn = client.post("/my-agent", files={"verdicts": files["verdicts"]}, data={"step": "draw"})
    assert drawn.status_code == 200 and drawn_in(drawn.text)
    assert "<script>alert" not in drawn.text and "<img src=x" not in drawn.text
    files["labels"] = (f"{hostile}.csv", f"trajectory_id,success\n{hostile},{hostile}\n".encode())
    answer = client.post("/my-agent", files=files)
    assert answer.status_code == 422
    assert "The files cannot be used yet" in shown_text(answer.text)
    assert "<script>alert" not in answer.text and "<img src=x" not in answer.text


def test_labels_on_the_page_give_the_estimate_of_the_same_labels_in_a_file(service):
    client = local_client(service)
    page = client.post("/my-agent", files=verdicts_of(), data={"step": "draw", "n_labels": 20}).text
    drawn = drawn_in(page)
    assert len(drawn) == 20
    is_success = {run: int(run.rpartition("/")[2]) % 4 == 0 for run in drawn}
    answers = {f"label-{i}": "yes" if is_success[run] else "no" for i, run in enumerate(drawn)}
    form = {"step": "labels", "n_labels": 20, "drawn": key_in(page), **answers}
    answer = client.post("/my-agent", files=verdicts_of(), data=form)
    found = estimates_in(answer.text)["my-agent"]
    # The judge is right on every drawn run, so the estimate is its rate: 10 of 40 runs.
    assert (found[0], found[1], found[3][:4]) == ("20 of 40", "25.0", "25.0")
    rows = [f"{run},{'yes' if value else 'no'}" for run, value in is_success.items()]
    labels = "\n".join(["trajectory_id,success", *rows]).encode()
    in_file = client.post("/my-agent", files={**verdicts_of(), "labels": ("labels.csv", labels)})
    assert estimates_in(in_file.text)["my-agent"] == found
    assert answer.text.count(" checked>") == 20  # the labels are still there, to be corrected
    assert "how the labelled runs were chosen" not in shown_text(answer.text)
    assert_nothing_was_written(service)


def test_unsure_is_no_label_and_too_few_labels_are_said(service):
    client = local_client(service)
    page = client.post("/my-agent", files=verdicts_of(), data={"step": "draw", "n_labels": 10}).text
    answers = {f"label-{i}": "unsure" if i == 0 else "no" for i in range(10)}
    form = {"step": "labels", "n_labels": 10, "drawn": key_in(page), **answers}
    answer = client.post("/my-agent", files=verdicts_of(), data=form)
    assert estimates_in(answer.text)["my-agent"][0] == "9 of 40"
    assert "9 of 40 runs have a label; label 10 or more" in shown_text(answer.text)
    assert "1 of 10 drawn runs are not labelled or answered Unsure" in shown_text(answer.text)
    outcome = default_targets()[0]
    assert labels_of({"a": "yes", "b": "no", "c": "unsure", "d": ""}, outcome) == {"a": True, "b": False}


def test_the_answers_are_those_of_the_target_with_a_key_each(tmp_path):
    assert [key for _, key in answers_with_keys(default_targets()[0])] == ["y", "n", "u"]
    words = '[[targets]]\nname = "{}"\ntitle = "Solved"\ntext = "Solved?"\nvalues = [{}]\npositive = ["{}"]\n'
    folder = write_suite(tmp_path)
    target = words.format("solved", '"done", "failed", "unclear"', "done")
    (folder / "suite.toml").write_text(f'labels = "public"\n{target}')
    service = SubmissionsApp(settings_for(tmp_path, tmp_path / "state", labels="none"))
    rows = [f"own/a/{i},{'done' if i % 4 == 0 else 'failed'}" for i in range(40)]
    files = {"verdicts": ("judge.csv", "\n".join(["trajectory_id,solved", *rows]).encode())}
    client = local_client(service)
    page = client.post("/my-agent", files=files, data={"step": "draw", "n_labels": 12}).text
    # Two titles begin with u, so the keys are the places of the answers.
    assert "Press 1 for done, 2 for failed, 3 for unclear and 4 for unsure" in shown_text(page)
    found = re.findall(r'name="label-0" value="([^"]*)" data-key="([^"]*)"', page)
    assert found == [("done", "1"), ("failed", "2"), ("unclear", "3"), ("unsure", "4")]
    drawn = drawn_in(page)
    is_done = [int(run.rpartition("/")[2]) % 4 == 0 for run in drawn]
    answers = {f"label-{i}": "done" if done else "unclear" for i, done in enumerate(is_done)}
    form = {"step": "labels", "n_labels": 12, "drawn": key_in(page), **answers}
    shown = estimates_in(client.post("/my-agent", files=files, data=form).text)["a"]
    # Unclear is not positive, as failed: the judge is right on every drawn run, and 10 of 40 are done.
    assert (shown[0], shown[1], shown[3][:4]) == ("12 of 40", "25.0", "25.0")


def test_labels_of_another_draw_are_not_used_and_the_page_says_so(service):
    client = local_client(service)
    page = client.post("/my-agent", files=verdicts_of(), data={"step": "draw", "n_labels": 10}).text
    form = {"step": "labels", "n_labels": 20, "drawn": key_in(page), "label-0": "yes"}
    answer = client.post("/my-agent", files=verdicts_of(), data=form)
    assert len(drawn_in(answer.text)) == 20 and " checked>" not in answer.text
    assert "so runs were drawn again" in shown_text(answer.text)
    assert 'id="own-estimate"' not in answer.text


def test_a_run_that_is_served_has_its_goal_answer_and_link_and_others_take_them_from_a_file(service):
    served = [each.trajectory_id for each in load_suite("sample").split("test")[:12]]
    rows = [json.dumps({"trajectory_id": run, "success": True}) for run in (*served, "own/x/1")]
    texts = {
        "trajectory_id": "own/x/1",
        "goal": "Find <b>Bergen</b>.",
        "answer": "It is in Norway.",
        "steps": [],
    }
    files = {
        "verdicts": ("judge.jsonl", "\n".join(rows).encode()),
        "texts": ("runs.jsonl", json.dumps(texts).encode()),
    }
    html = local_client(service).post("/my-agent", files=files, data={"step": "draw", "n_labels": 60}).text
    own, sample = html.partition('data-run="own/x/1"')[2], html.partition(f'data-run="{served[0]}"')[2]
    own = own.partition("</li>")[0]
    assert "Find &lt;b&gt;Bergen&lt;/b&gt;." in own and "It is in Norway." in own and "<a " not in own
    goal = page_at(service, "/trajectories", id=served[0]).partition('class="goal-text"')[2][1:30]
    sample = sample.partition("</li>")[0]
    assert goal in sample and f'href="/trajectories?id={served[0]}"' in sample


def test_a_run_that_is_served_loads_its_steps_next_to_its_goal_and_answer(service):
    (run,) = (each.trajectory_id for each in load_suite("sample").split("test")[:1])
    client = local_client(service)
    files = {"verdicts": ("judge.csv", f"trajectory_id,success\n{run},yes\nown/x/1,yes\n".encode())}
    html = client.post("/my-agent", files=files, data={"step": "draw", "n_labels": 10}).text
    address = f"/trajectories/steps?trajectory_id={run}"
    assert re.findall(r'data-steps="([^"]*)"', html) == [address]  # the other run is not served
    assert "<h4>Step 1" in client.get(address).text


@pytest.fixture
def of_logs(tmp_path, monkeypatch):
    """A client of a Space that serves logs with 5 crashed runs, and a judge's verdicts on the other runs."""
    monkeypatch.setenv("ARB_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "logs").mkdir()
    settings = _settings_of_source(write_crashing_logs(tmp_path / "logs", crashed=5), Settings())
    service = SubmissionsApp(settings)
    ids = [each.trajectory_id for each in service.suite.trajectories]
    return local_client(service), [f"{run},{'yes' if '=0.7' in run else 'no'}" for run in ids]


def form_of(rows: list[str]) -> dict:
    table = "\n".join(["trajectory_id,success", *rows]).encode()
    return {"verdicts": ("judge.csv", table), "labels": ("labels.csv", table)}


def test_crashed_runs_of_the_served_folder_are_failures_unless_they_are_left_out(of_logs):
    client, rows = of_logs
    # 20 runs without a success; 15 successes of 15 runs, and 5 crashed runs: 15/20 = 75 %
    for choice, (n, rate) in {"failures": (20, 0.75), "apart": (15, 1.0)}.items():
        form = {"crashed": choice}
        found = client.post("/api/estimate", files=form_of(rows), data=form).json()
        rates = [(each["n"], each["labels_only"]["rate"]) for each in found["agents"]]
        assert rates == [(20, 0.0), (n, rate)]
        ids = [f"t/m_temperature=0.7/{number}" for number in range(5)]
        assert found["crashed"] == {"runs": ids, "count_as": choice, "not_counted": 0}
        page = client.post("/my-agent", files=form_of(rows), data=form).text
        assert estimates_in(page)["m_temperature=0.7"][0] == f"15 of {n}"
        words = "counted as failures" if choice == "failures" else "left out"
        assert f"5 runs crashed before a judge could see anything ({words})." in shown_text(page)
        assert all(run in page for run in ids)


def test_crashed_runs_are_failures_for_runs_that_are_labelled_on_the_page_too(of_logs):
    client, rows = of_logs
    files = {"verdicts": form_of(rows)["verdicts"]}
    page = client.post("/my-agent", files=files, data={"step": "draw", "n_labels": 30}).text
    assert len(drawn_in(page)) == 35 and 'name="crashed"' in page
    answers = {f"label-{i}": "yes" if "=0.7" in run else "no" for i, run in enumerate(drawn_in(page))}
    form = {"step": "labels", "n_labels": 30, "drawn": key_in(page), **answers}
    found = estimates_in(client.post("/my-agent", files=files, data=form).text)
    assert found["m_temperature=0.7"][0] == "15 of 20" and found["m_temperature=0.7"][2][:4] == "75.0"


def test_crashed_runs_of_an_agent_that_was_judged_in_part_are_not_counted_which_is_said(of_logs):
    client, rows = of_logs
    rows = [row for row in rows if row != "t/m_temperature=0.7/9,yes"]
    found = client.post("/api/estimate", files=form_of(rows)).json()
    assert [each["n"] for each in found["agents"]] == [20, 14]
    assert found["crashed"] == {"runs": [], "count_as": "failures", "not_counted": 5}
    page = client.post("/my-agent", files=form_of(rows)).text
    assert "Not counted: 5 other crashed runs, because the files have verdicts on only some" in page


def test_without_a_served_folder_the_page_and_the_api_say_that_crashed_runs_are_not_known(service):
    client = local_client(service)
    page = client.post("/my-agent", files=own_files()).text
    assert "Runs that crashed before a judge could see them are not known here" in shown_text(page)
    assert "they are missing from the rates here" in shown_text(page) and 'name="crashed"' not in page
    assert client.post("/api/estimate", files=own_files()).json()["crashed"] is None


def test_more_runs_than_the_page_takes_are_one_finding_that_says_what_to_do(service):
    rows = [f"own/agent{k}/{i},yes" for k in range(11) for i in range(30)]
    files = {"verdicts": ("j.csv", "\n".join(["trajectory_id,success", *rows]).encode())}
    answer = local_client(service).post("/my-agent", files=files, data={"step": "draw", "n_labels": 30})
    # 11 x 30 = 330, above 300
    assert answer.status_code == 422 and MOST_IN_PLACE == 300
    assert "30 runs of each of 11 agents are 330 runs, and at most 300 can be labelled here" in answer.text
    assert "Label fewer runs per agent, or send a file of labels instead." in answer.text


def test_a_full_sheet_of_answers_is_accepted(service):
    client = local_client(service)
    rows = [f"own/agent{k}/{i},{'yes' if i % 2 else 'no'}" for k in range(3) for i in range(100)]
    files = {"verdicts": ("j.csv", "\n".join(["trajectory_id,success", *rows]).encode())}
    page = client.post("/my-agent", files=files, data={"step": "draw", "n_labels": 100}).text
    assert len(drawn_in(page)) == 300
    form = {"step": "labels", "n_labels": 100, "drawn": key_in(page)}
    answer = client.post("/my-agent", files=files, data=form | {f"label-{i}": "unsure" for i in range(300)})
    assert answer.status_code == 200 and answer.text.count(" checked>") == 300


@pytest.mark.parametrize(
    "content",
    [b"[1]", b'{"trajectory_id": 5}', b'{"goal": "x"}', b"not json", b'{"trajectory_id":"a/b/c","goal":[1]}'],
)
def test_goals_of_another_form_are_one_message_with_the_line(content):
    found, (finding,) = read_texts("runs.jsonl", b'{"trajectory_id": "a/b/c", "goal": null}\n\n' + content)
    assert found == {} and (finding.file, finding.code) == ("runs.jsonl", "not_texts")
    assert finding.message.startswith("line 3 is not a JSON object with the texts")


def test_goals_are_found_by_any_spelling_of_the_id():
    found, errors = read_texts("runs.jsonl", b'{"trajectory_id": " a/b/c ", "goal": "g", "answer": null}')
    assert (found, errors) == ({"a/b/c": RunTexts("g", "")}, [])


def test_a_file_step_without_labels_says_what_to_do(service):
    answer = local_client(service).post("/my-agent", files=verdicts_of(), data={"step": "file"})
    assert answer.status_code == 422
    assert "no file of labels was chosen. Choose one, or draw runs" in shown_text(answer.text)


def test_the_page_belongs_to_the_success_rates_and_is_off_with_them():
    from arb.core.suites.profile import SuiteProfile

    assert SuiteProfile("Ours").serves("/my-agent")
    assert not SuiteProfile("Ours", pages=frozenset({"trajectories"})).serves("/my-agent")
