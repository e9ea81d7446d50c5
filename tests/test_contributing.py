"""CONTRIBUTING.md's table is right: each change is made in a copy, in the files of its row, and used."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

REPOSITORY = Path(__file__).parents[1]
TABLE = {
    row[0]: row[1]
    for line in (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()
    if len(row := [cell.strip() for cell in line.strip("|").split("|")]) == 2
}
"""From a change to the files where it goes, as Markdown."""
CHANGES = [files for change, files in TABLE.items() if "`" in files and not change.startswith("`")]


class Copy:
    """A copy of the product, in which a change is made and used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = subprocess.run(
            ["git", "ls-files", "arb", "dataset_script", "leaderboard", "space", "submissions"],
            cwd=REPOSITORY, capture_output=True, text=True, check=True,
        )  # fmt: skip
        for name in listed.stdout.splitlines():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, target)

    def change(self, row: str, new: Mapping[str, str] = {}, **edits: tuple[str, str, str]) -> None:
        """Write new files, and insert text after an anchor in others: (path, anchor, text).

        Each path has to be in the table's row, by its name or by its folder.
        """
        for path, text in new.items():
            folders = [f"`{parent.as_posix()}/`" for parent in Path(path).parents]
            assert any(folder in TABLE[row] for folder in folders), f"{row}: {path} is in no folder of it"
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(dedent(text), encoding="utf-8")
        for path, anchor, text in edits.values():
            assert path in TABLE[row] or f"`{Path(path).name}`" in TABLE[row], f"{row}: {path} is not named"
            content = (self.folder / path).read_text(encoding="utf-8")
            anchor = anchor or content  # without an anchor the text comes at the end
            assert content.count(anchor) == 1, f"{path}: {anchor!r} is there {content.count(anchor)} times"
            (self.folder / path).write_text(content.replace(anchor, anchor + text), encoding="utf-8")

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *command], cwd=self.folder, capture_output=True, text=True, timeout=300,
            env=os.environ | {"ARB_SUITE": "sample", "PYTHONPATH": str(self.folder)} | environment,
        )  # fmt: skip

    def arb(self, *command: str, **environment: str) -> str:
        """Return what a command prints; it has to succeed."""
        done = self.run("-m", "arb", *command, **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def python(self, code: str) -> str:
        done = self.run("-c", dedent(code))
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def copy(tmp_path) -> Copy:
    return Copy(tmp_path)


@pytest.mark.slow
def test_a_column_is_shown_and_sorts_the_board(copy):
    copy.change(
        "a column of the board",
        heading=(
            "space/templates/leaderboard/table.html",
            '{{ heading("date", "Source", "from", "Sort by date") }}{% endif %}\n',
            '{{ heading("authors", "Authors", "authors") }}\n',
        ),
        cell=(
            "space/templates/leaderboard/row.html",
            "{{ row.attempts or '' }}</td>{% endif %}\n",
            '<td class="authors">{{ row.authors }}</td>\n',
        ),
        key=(
            "space/pages/leaderboard/query.py",
            '    "judge": lambda row: row.judge.casefold(),\n',
            '    "authors": lambda row: row.authors.casefold() or None,\n',
        ),
    )
    code = """
        import re
        from fastapi.testclient import TestClient
        from arb.core.settings import Settings
        from space.app import create_app

        settings = Settings(state_dir="state", labels="none", suite="agent-reward-bench")
        client = TestClient(create_app(settings))
        (address,) = re.findall(r'id="sort-authors" href="([^"]*)"', client.get("/").text)
        answer = client.get(address.replace("&amp;", "&"))
        authors = re.findall(r'<td class="authors">([^<]*)</td>', answer.text.split('class="references"')[0])
        authors = [each.casefold() for each in authors if each]
        print(answer.status_code, len(authors) > 5, authors == sorted(authors, reverse="sort=-" in address))
    """
    assert copy.python(code).split() == ["200", "True", "True"]


@pytest.mark.slow
def test_a_judge_is_listed_planned_and_run(copy):
    judge = '''
        """A judge that trusts runs which end with an answer."""

        from dataclasses import dataclass

        from arb.judges.prompting import prompts_hash
        from arb.judges.types import Answer, DescribedJudge, JudgeSession, JudgeTraits, View, Wants


        @dataclass(frozen=True)
        class AnswerJudge(DescribedJudge):
            """Says success if the agent gave an answer. Calls no model."""

            name: str
            inputs: str = "answer"
            calls: str = "0"
            source: str = "a test"
            prompts_hash: str = prompts_hash("")
            wants = Wants()
            models = {}

            def describe(self) -> JudgeTraits:
                return JudgeTraits(method="answer", is_official=True)

            def ask(self, view: View) -> JudgeSession:
                yield from ()
                return Answer("ok", success=view.answer is not None)
    '''
    copy.change(
        "a judge",
        {"arb/judges/catalog/answer.py": judge},
        imported=(
            "arb/judges/registry.py",
            "from arb.judges.catalog.aer import AerJudge\n",
            "from arb.judges.catalog.answer import AnswerJudge\n",
        ),
        kind=("arb/judges/registry.py", '    "aer": AerJudge,\n', '    "answer": AnswerJudge,\n'),
        entry=(
            "arb/judges/catalog/judges.toml",
            "",
            '\n[[judge]]\nname = "Gave an answer"\nkind = "answer"\naliases = ["gave-an-answer"]\n',
        ),
    )
    assert "Gave an answer" in copy.arb("judges", "list")
    assert copy.arb("judges", "plan", "gave-an-answer", "--split", "dev")
    copy.arb("judges", "run", "gave-an-answer", "--split", "dev", "--out", "run")
    rows = (copy.folder / "run" / "predictions.jsonl").read_text().splitlines()
    assert len(rows) == 20 and {type(json.loads(row)["success"]) for row in rows} == {bool}


@pytest.mark.slow
def test_a_provider_takes_its_address_and_its_key(copy):
    copy.change(
        "a provider",
        entry=(
            "arb/judges/endpoints/providers.toml",
            "",
            '\n[ours]\nbase_url = "http://127.0.0.1:9/v1"\nkey_variable = "OUR_KEY"\n',
        ),
    )
    command = ("judges", "plan", "aer-c", "--split", "dev", "--provider", "ours", "--model", "m")
    assert "m" in copy.arb(*command, OUR_KEY="k")
    assert "ours" in copy.arb("judges", "plan", "--help")


def test_a_source_is_recognised_and_read(copy):
    source = '''
        """Runs as text: the goal, then one action per line, in ``*.steps.txt``."""

        from collections.abc import Iterator
        from dataclasses import dataclass
        from pathlib import Path
        from typing import ClassVar

        from arb.core.trajectory import Recording, Step
        from dataset_script.sources.base import FoundRun, SourceFile, TrajectorySource


        @dataclass(frozen=True, slots=True)
        class TextSource(TrajectorySource):
            """The runs of a folder."""

            kind: ClassVar[str] = "text"
            expected: ClassVar[str] = "holds no run"

            @staticmethod
            def candidates(folder: Path) -> Iterator[Path]:
                return folder.glob("*.steps.txt")

            @staticmethod
            def holds_runs(path: Path) -> bool:
                return path.is_file()

            def runs_in(self, path: Path) -> Iterator[FoundRun]:
                yield FoundRun(self.file(path), "shop", "me", path.name.removesuffix(".steps.txt"))

            def read(self, file: SourceFile) -> tuple[Recording, list]:
                goal, *actions = file.path.read_text(encoding="utf-8").splitlines()
                steps = tuple(Step(number, action=action) for number, action in enumerate(actions, 1))
                return Recording(file.trajectory_id, goal=goal, steps=steps), []
    '''
    copy.change(
        "a source of trajectories",
        {"dataset_script/sources/text.py": source},
        line=(
            "arb/core/plugins.toml",
            'atif = "dataset_script.sources.atif:AtifSource"\n',
            'text = "dataset_script.sources.text:TextSource"\n',
        ),
    )
    (copy.folder / "runs").mkdir()
    (copy.folder / "runs" / "laptop.steps.txt").write_text("Find a laptop\nclick(1)\nclick(2)\n")
    read = json.loads(copy.arb("data", "inspect-source", "runs", "--json"))
    assert "shop/me/laptop" in json.dumps(read)


def test_a_finding_is_reported_by_the_check(copy):
    copy.change(
        "a finding in prediction files",
        found=(
            "arb/core/predictions/check.py",
            "        found += checked.id_findings() + checked.verdict_findings()\n",
            '        if checked.table.rows == 2:\n            found.append(finding("two_rows", count=2))\n',
        ),
        words=(
            "arb/core/predictions/findings.toml",
            "",
            '\n[two_rows]\nlevel = "warning"\nmessage = "the file has two rows."\n',
        ),
    )
    (copy.folder / "two.csv").write_text("trajectory_id,success\na/b/c,true\na/b/d,false\n")
    done = copy.run("-m", "arb", "submissions", "check", "two.csv", "--split", "dev")
    assert "the file has two rows." in done.stdout + done.stderr


@pytest.mark.slow
def test_a_page_is_served_and_in_the_menu(copy):
    page = '''
        """``/hello``: a page."""

        from fastapi import APIRouter, Request, Response

        from space.web.frame import PageFrame


        def build_hello_router(pages: PageFrame) -> APIRouter:
            """``GET /hello``."""
            router = APIRouter()

            @router.get("/hello", include_in_schema=False)
            def hello(request: Request) -> Response:
                return pages.answer("about/hello.html", "Hello", "/hello", name="reader")

            return router
    '''
    copy.change(
        "a page",
        {
            "space/pages/about/hello.py": page,
            "space/templates/about/hello.html": (
                '{% extends "frame/page.html" %}{% block content %}<p>Hello, {{ name }}.</p>{% endblock %}'
            ),
        },
        imported=(
            "space/app.py",
            "from space.pages.about.page import build_about_router\n",
            "from space.pages.about.hello import build_hello_router\n",
        ),
        router=(
            "space/app.py",
            "        build_paper_router(services, pages),\n",
            "        build_hello_router(pages),\n",
        ),
        entry=(
            "space/web/frame.py",
            '    MenuEntry("About", "/about"),\n',
            '    MenuEntry("Hello", "/hello"),\n',
        ),
    )
    code = """
        from fastapi.testclient import TestClient
        from arb.core.settings import Settings
        from space.app import create_app

        client = TestClient(create_app(Settings(state_dir="state", labels="none")))
        print("Hello, reader." in client.get("/hello").text, 'href="/hello"' in client.get("/about").text)
    """
    assert copy.python(code).split() == ["True", "True"]


@pytest.mark.slow
def test_an_event_kind_changes_the_status_of_a_submission(copy):
    copy.change(
        "an event kind",
        kind=("submissions/records/event_log.py", '    "submitted", "scored", ', '"starred", '),
        field=(
            "submissions/records/statuses.py",
            "    is_label_exposed: bool = False\n",
            "    is_starred: bool = False\n",
        ),
        effect=(
            "submissions/records/statuses.py",
            '    "label_exposed": {"is_label_exposed": True},\n',
            '    "starred": {"is_starred": True},\n',
        ),
    )
    code = """
        from datetime import UTC, datetime
        from sqlalchemy.orm import Session
        from submissions.records.database import migrate, open_database
        from submissions.records.event_log import STATUS_KINDS, add_event, events_after
        from submissions.records.statuses import fold_statuses

        engine = open_database("sqlite:///records.db")
        migrate(engine)
        with Session(engine) as session, session.begin():
            add_event(session, "starred", "mia", datetime.now(UTC), {"submission_id": "s1", "reason": ""})
            print(fold_statuses(events_after(session, kinds=STATUS_KINDS)).of("s1").is_starred)
    """
    assert copy.python(code).split() == ["True"]


def test_a_limit_is_read_from_the_suite_and_counted(copy):
    copy.change(
        "a limit",
        rule=("arb/core/suite.py", "    files_a_year: int = 20\n", "    files_a_week: int = 5\n"),
        words=(
            "arb/core/suites/suite.toml.j2",
            "files_a_year = {{ rules.files_a_year | toml }}\n",
            "# The same in 7 days.\nfiles_a_week = {{ rules.files_a_week | toml }}\n",
        ),
        count=(
            "submissions/intake/accounts.py",
            "    left, waits = [], []\n",
            "    week = (timedelta(days=7), rules.files_a_week)\n",
        ),
        loop=(
            "submissions/intake/accounts.py",
            "((DAY, rules.files_a_day), (YEAR, rules.files_a_year)",
            ", week",
        ),
    )
    code = """
        from datetime import UTC, datetime, timedelta
        from arb.core.suite import read_rules
        from submissions.intake.accounts import remaining_quota

        now = datetime(2026, 1, 10, tzinfo=UTC)
        rules = read_rules({"files_a_day": 2, "files_a_week": 3})
        print(remaining_quota([now - timedelta(days=day) for day in (2, 3, 4)], rules, now).left_today)
    """
    assert copy.python(code).split() == ["0"]  # 3 of 3 files of the week are used; none was sent today


def test_a_statistic_is_computed_and_ranks(copy):
    copy.change(
        "a statistic",
        formula=(
            "leaderboard/judge_precision/confusion.py",
            '        "kappa": _kappa,\n',
            '        "yes_rate": lambda tp, fp, fn, tn: (tp + fp) / (tp + fp + fn + tn),\n',
        ),
        effect=(
            "leaderboard/board/ranks.py",
            '"balanced_accuracy": 1.75, "kappa": 1.7',
            ', "yes_rate": 1.6',
        ),
        interval=(
            "leaderboard/board/ranks.py",
            '        "fpr": (fp, tn),\n',
            '        "yes_rate": (tp + fp, fn + tn),\n',
        ),
        title=("arb/core/vocabulary.toml", 'kappa = "Kappa"\n', 'yes_rate = "Yes rate"\n'),
    )
    code = """
        from arb.core.suite import OFFICIAL
        from leaderboard.board.board import make_board
        from leaderboard.judge_precision.confusion import figures
        from leaderboard.paper.published import load_published_rows

        print(figures(tp=3, fp=1, fn=2, tn=4)["yes_rate"])
        board = make_board(OFFICIAL, [], load_published_rows(), None)
        print(sum(rank is not None for rank in board.ranks("success", "yes_rate").values()) > 5)
    """
    assert copy.python(code).split() == ["0.4", "True"]  # (3 + 1) of 10 called successful


def test_a_label_question_is_asked_of_annotators(copy):
    question = """
        [[targets]]
        name = "success"
        title = "Success"
        text = "Did the agent reach the goal?"
        answers = [{ value = "yes", title = "Yes" }, { value = "no", title = "No" }]
        guide = "Look at where the run ends."

        [[targets]]
        name = "politeness"
        title = "Politeness"
        text = "Was the agent polite?"
        answers = [{ value = "polite", title = "Polite" }, { value = "rude", title = "Rude" }]
        guide = "Rude: it insulted somebody."
        metrics = []
    """
    suite = copy.folder / "suite"
    shutil.copytree(copy.folder / "arb" / "core" / "suites" / "sample", suite)
    assert "`suite.toml` (`[[targets]]`), no code" in TABLE["a target (what is asked and scored)"]
    with (suite / "suite.toml").open("a", encoding="utf-8") as file:
        file.write(dedent(question))
    code = """
        from arb.core.suite import load_suite

        print(load_suite("suite").target("politeness").title)
    """
    assert copy.python(code).strip() == "Politeness"


def test_every_path_that_the_table_names_is_there():
    named = {
        path
        for change in CHANGES
        for path in re.findall(
            r"`((?:arb|dataset_script|leaderboard|space|submissions|tests)/[\w/.]*)`", change
        )
    }
    assert len(named) > 30
    assert [path for path in sorted(named) if not (REPOSITORY / path).exists()] == []
