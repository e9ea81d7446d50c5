"""The annotators' pages and REST: blind to labels, verdicts, rewards and each other; who may do what.

Blindness is shown by two worlds that differ in nothing but what somebody said of the runs: labels, verdicts,
rewards, other annotators' answers, decisions. Whatever a blind annotator asks for is the same in both.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from arb.core.annotation import Annotation
from arb.core.suite import load_suite
from arb.core.suites.targets import default_targets
from space.app import add_routes
from space.pages.labels.annotation import contradictions_of, describe_time
from space.pages.trajectories.dataset import Explorer
from space.services import Services
from space.web.frame import PageFrame, render
from space.web.responses import StaticAssets
from submissions.app import SubmissionsApp
from submissions.intake.accounts import Actor
from submissions.labels.annotation_state import AssignedTask, Draft, SavedAnswers
from submissions.labels.assignment import GoldAgreement
from submissions.moderation.reader_actions import ReaderActions
from tests.support import synthetic_dataset as synthetic
from tests.support.annotations import by
from tests.support.space_app import rest_app
from tests.support.submissions import send, settings_for, verdicts, write_suite

ORIGIN = "http://127.0.0.1:7860"
GRACE = Actor("grace", is_maintainer=True)
PLANTED = "PLANTED-REASONING"
SHAPE = synthetic.Shape(pages=4, tree_characters=800, mean_steps=4)


class World:
    """A server over its own records and dataset; everything that was said in it is ``yes`` or all ``no``."""

    def __init__(self, folder: Path, yes: bool) -> None:
        self.yes = yes
        suite_folder = write_suite(folder)
        text = (folder / "labels.csv").read_text()
        success = "Successful" if yes else "Unsuccessful"
        (folder / "labels.csv").write_text(re.sub(r"\b(Uns|S)uccessful", success, text))
        suite = load_suite(suite_folder)
        data = _dataset(folder / "data", suite, yes)
        self.settings = settings_for(
            folder,
            folder / "state",
            data_dir=data,
            maintainers="grace",
            secret="4d714f6c3c852bf6bbbd4150b40440cb",
        )
        self.service = SubmissionsApp(self.settings)
        send(self.service, verdicts(suite, misses=0 if yes else 9))
        self.services = Services(self.service, Explorer(self.settings, self.service))
        self.app = rest_app(self.service)
        add_routes(self.app, self.services, PageFrame(StaticAssets()))
        self._label(suite)

    def _label(self, suite) -> None:
        """Ada and Bob share six runs of test and two of dev; Bob has done all, and a maintainer decided."""
        acts = self.services.annotations
        for name in ("ada", "bob"):
            acts.invite(name, GRACE)
        acts.assign_trajectories(
            [t.trajectory_id for t in (*suite.split("test")[6:12], *suite.split("dev")[:2])], 1.0, 1, GRACE
        )
        for trajectory_id in self.queue("bob"):
            acts.save(trajectory_id, self.said(PLANTED), 0, Actor("bob"))
        acts.resolve(self.queue("bob")[0], "success", "yes" if self.yes else "no", PLANTED, GRACE)
        readers = ReaderActions(self.service)
        judge = self.service.records.board().rows[0].id
        for trajectory_id in self.queue("bob"):
            readers.dispute(trajectory_id, "success", PLANTED, Actor("bob"))
            for who, category in (("bob", "missed_instruction"), ("eve", "misunderstood_action")):
                readers.tag(judge, trajectory_id, category, PLANTED, Actor(who))

    def said(self, comment: str = "") -> Draft:
        """The answers of this world."""
        word = "yes" if self.yes else "no"
        answers = {"success": word, "side_effect": "unsure", "repetition": word}
        return Draft({**answers, "optimality": "4" if self.yes else "1"}, comment, 5, True)

    def queue(self, account: str) -> list[str]:
        state = self.services.annotations.now()
        return [task.trajectory_id for task in state.queue(state.annotator_of(account) or "")]

    def address(self, account: str, trajectory_id: str) -> str:
        """The page on which somebody annotates a trajectory; nobody else's."""
        return self.reader(account).address_of(trajectory_id)

    def item(self, account: str, trajectory_id: str) -> str:
        return self.reader(account).token(trajectory_id)

    def reader(self, account: str):
        return self.services.access.context_of(Actor(account, is_maintainer=account == "grace"))

    def client(self, account: str | None = None) -> TestClient:
        """A browser on our own pages, signed in where an account is said."""
        client = TestClient(self.app, base_url=ORIGIN, headers={"sec-fetch-site": "same-origin"})
        if account:
            answer = client.post("/sign-in", data={"name": account}, follow_redirects=False)
            assert answer.status_code == 303
        return client


def _dataset(out: Path, suite, yes: bool) -> Path:
    """A dataset whose labels, rewards and judgments all say the same; steps and goals are equal in both."""
    word, grade = ("yes", "4") if yes else ("no", "1")
    labels = [by(t.trajectory_id, "annotator-9", word, word, word, grade) for t in suite.split("dev")]
    part = synthetic.SyntheticPart
    recording, judgments = part._recording, part._judgments
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(synthetic, "load_dev_labels", lambda _: labels)
        patched.setattr(part, "_recording", lambda self: replace(recording(self), cum_reward=float(yes)))
        patched.setattr(
            part,
            "_judgments",
            lambda self: [
                replace(each, success=yes, side_effect=yes, repetition=yes, reply=f"{PLANTED} {yes}")
                for each in judgments(self)
            ],
        )
        return synthetic.make_dataset(out, suite, SHAPE)


@pytest.fixture(scope="module")
def worlds(tmp_path_factory) -> tuple[World, World]:
    """The same runs, everything said of them yes, and everything no."""
    return tuple(World(tmp_path_factory.mktemp(str(yes)), yes) for yes in (True, False))


class _Addresses(HTMLParser):
    """Every address that a page makes a browser load, or offers to follow."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: set[str] = set()
        self.linked: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        for name in ("src", "data-later", "data-address"):
            if given.get(name):
                self.loaded.add(given[name])
        for part in (given.get("srcset") or "").split(","):
            if part.strip():
                self.loaded.add(part.split()[0])
        if tag == "a" and given.get("href"):
            self.linked.add(given["href"])


def everything(world: World, account: str) -> dict[str, tuple[int, bytes]]:
    """Each address that an annotator can come to by these pages, with its answer; versions evened out."""
    client = world.client(account)
    version = world.services.trajectories.holding(world.queue(account)[0]).version
    waiting = ["/annotate", "/discuss", "/api/annotate", "/api/discuss", "/api/me"]
    for name in (*world.queue(account), world.service.suite.split("test")[0].trajectory_id):
        item = world.item(account, name)
        waiting += [f"/annotate?item={item}", f"/api/annotate/answers?item={item}"]
    found: dict[str, tuple[int, bytes]] = {}
    while waiting:
        address = waiting.pop()
        key = address.replace(version, "VERSION")
        if key in found or not address.startswith(
            ("/annotate", "/api/annotate", "/discuss", "/api/discuss", "/api/me")
        ):
            continue
        answer = client.get(address, follow_redirects=False)
        found[key] = (answer.status_code, answer.content.replace(version.encode(), b"VERSION"))
        if answer.headers.get("content-type", "").startswith("text/html"):
            parser = _Addresses()
            parser.feed(answer.text)
            trees = [
                f"{a}&num={n}&form={f}"
                for a in parser.loaded
                if "/tree" in a
                for n in (0, 1)
                for f in ("full", "pruned")
            ]
            waiting += [a for a in parser.loaded if "/tree" not in a] + sorted(parser.linked) + trees
    return found


@pytest.mark.slow
def test_whatever_a_blind_annotator_asks_for_is_the_same_whatever_others_said(worlds):
    answers = [everything(world, "ada") for world in worlds]
    assert answers[0].keys() == answers[1].keys()
    assert [key for key in answers[0] if answers[0][key] != answers[1][key]] == []
    kinds = {key.partition("?")[0] for key, (status, _) in answers[0].items() if status == 200}
    assert kinds == {
        "/annotate", "/discuss", "/api/annotate", "/api/annotate/answers", "/api/annotate/screenshot",
        "/api/annotate/tree", "/api/discuss", "/api/me",
    }  # fmt: skip


@pytest.mark.slow
def test_the_two_worlds_do_differ_for_who_may_see_answers(worlds):
    answers = [everything(world, "bob") for world in worlds]
    different = {key.partition("?")[0] for key in answers[0] if answers[0][key] != answers[1][key]}
    assert {"/annotate", "/api/annotate/answers"} <= different
    pages = [world.client("grace").get("/api/discuss").text for world in worlds]
    assert pages[0] != pages[1]


def test_no_word_of_a_verdict_or_a_reward_is_in_a_blind_page(worlds):
    judges = {name for judge in synthetic.JUDGES for name in judge[:2] if name}
    words = [PLANTED, "cum_reward", "rule_based", "functional", "First judge", "annotator-9", *judges]
    for key, (_, content) in everything(worlds[0], "ada").items():
        if "/screenshot" in key:
            continue
        text = content.decode()
        assert [word for word in words if word in text] == [], key
        shown = text.partition("<main")[2].partition("</main>")[0] if "<main" in text else text
        assert re.findall(r"\b(?:verdicts?|rewards?|judg(?:e|ment)s?)\b", shown) == [], key


def whole_site(world: World, account: str | None, names: Sequence[str]) -> dict[str, str]:
    """Every page and answer of REST that shows single trajectories, with headers; ``names`` are some."""
    client = world.client(account)
    judge = world.service.records.board().ranking("success")[0].id
    addresses = [
        "/", "/compare", f"/judge?id={judge}", "/rates", "/labels", "/disputes", "/errors", "/discuss",
        "/annotate", "/mine", "/maintain", "/api/me", "/api/annotate", "/api/discuss", "/api/disputes",
        "/api/errors.csv", "/api/board.json", "/api/board.csv", "/api/judges", "/api/boards",
        "/api/maintain/log?most=200", "/maintain?kind=annotated", "/maintain?kind=assigned",
        "/trajectories?sort=disagreement", "/trajectories?outcome=success", "/trajectories?judges=disagree",
        "/trajectories?page=2", "/trajectories?agent=agent-a&split=test", "/trajectories?search=agent-a/web",
        f"/errors?judge={judge}&split=test", f"/errors?judge={synthetic.JUDGES[0][0]}&split=dev",
    ]  # fmt: skip
    of_items = [
        path.format(name)
        for name in (names[0], names[-1])
        for path in (
            "/trajectories?id={}", "/disputes?trajectory_id={}",
            "/trajectories/reasoning?trajectory_id={}&judge=" + synthetic.JUDGES[0][0],
            "/api/disputes?trajectory_id={}", "/trajectories/steps?trajectory_id={}",
        )
    ]  # fmt: skip
    found = {}
    for address in (*addresses, *of_items):
        answer = client.get(address, follow_redirects=False)
        # What a reader wrote into an address comes back in the field that it fills.
        text = answer.text.replace(f'value="{address.partition("trajectory_id=")[2]}"', "")
        found[address] = f"{dict(answer.headers)} {text}"
    return found


def leaks(pages: Mapping[str, str], names: Iterable[str]) -> dict[str, list[str]]:
    """The addresses whose answers hold the id of one of these runs, however it is spelled, or what was said
    of it."""
    spelled = {word for name in names for word in (name, quote(name, safe=""), json.dumps(name)[1:-1])}
    wanted = re.compile("|".join([PLANTED, *(re.escape(word) + r"(?!\w)" for word in spelled)]))
    return {address: found for address, text in pages.items() if (found := wanted.findall(text))}


@pytest.mark.slow
@pytest.mark.parametrize("account", ["ada", "grace"])
def test_no_page_shows_an_annotator_anything_of_a_run_before_they_have_answered(tmp_path, account):
    world = World(tmp_path, True)
    names = world.queue("ada")
    everybody = leaks(whole_site(world, None, names), names)
    assert {address.partition("?")[0] for address in everybody} >= {
        "/trajectories", "/trajectories/reasoning", "/errors", "/disputes", "/api/disputes",
        "/api/errors.csv",
    }  # fmt: skip  # the search finds what others may see
    if account == "grace":  # a maintainer who annotates: of what she has not, she sees all
        acts = world.services.annotations
        assert leaks(whole_site(world, "grace", names), names).keys() >= {
            "/discuss",
            "/api/maintain/log?most=200",
        }
        acts.uninvite("ada", GRACE)
        acts.invite("grace", GRACE)
        acts.assign_trajectories([], 1.0, 1, GRACE)
        assert sorted(world.queue("grace")) == sorted(names)
    assert leaks(whole_site(world, account, names), names) == {}
    assert leaks(whole_site(world, None, names), names).keys() == everybody.keys()  # from the same caches
    done, after = world.queue(account)[:2]
    for name in (done, after):
        assert leaks(whole_site(world, account, [done]), [done]) == {}  # the last one can yet be undone
        world.services.annotations.save(name, world.said(), 0, replace(GRACE, name=account))
    assert "/trajectories?id=" + done in leaks(whole_site(world, account, [done]), [done])


def test_nothing_of_a_run_is_shown_to_whom_it_is_not_assigned(worlds):
    world = worlds[0]
    foreign = world.service.suite.split("test")[0].trajectory_id
    client = world.client("ada")
    items = (world.item("bob", world.queue("ada")[0]), "0" * 32, "é", world.item("ada", foreign), foreign)
    answers = [
        client.get(f"/api/annotate/{what}", params={"item": item, "num": 0})
        for what in ("screenshot", "goal_image", "tree", "answers")
        for item in items
    ]
    answers += [
        client.put("/api/annotate/answers", json={"item": item, "answers": {"success": "yes"}})
        for item in items
    ]
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.json()["detail"] for answer in answers}) == 1
    pages = [client.get("/annotate", params={"item": item}) for item in items]
    assert {page.status_code for page in pages} == {404}
    assert len({page.content for page in pages}) == 1


def test_the_pictures_of_an_annotator_stay_in_their_own_browser(worlds):
    world = worlds[0]
    client, name = world.client("ada"), world.queue("ada")[0]
    version = world.services.trajectories.holding(name).version
    item = world.item("ada", name)
    answer = client.get("/api/annotate/screenshot", params={"item": item, "num": "0", "v": version})
    assert (answer.status_code, answer.headers["cache-control"].split(",")[0]) == (200, "private")
    assert client.get(world.address("ada", name)).headers["cache-control"] == "no-store"
    by_id = world.client().get("/api/screenshot", params={"trajectory_id": name, "num": "0"})
    assert answer.content == by_id.content
    assert answer.headers["etag"] != by_id.headers["etag"]  # which anybody can make of an id that they guess


def test_an_item_is_named_alike_after_a_restart(worlds):
    world = worlds[0]
    name = world.queue("ada")[0]
    again = SubmissionsApp(world.settings)
    reader = Services(again, Explorer(world.settings, again)).access.context_of(Actor("ada"))
    assert reader.address_of(name) == world.address("ada", name)


def test_the_queue_of_rest_names_the_runs_that_are_done_and_no_other(worlds):
    for account, is_done in (("ada", False), ("bob", True)):
        tasks = worlds[0].client(account).get("/api/annotate").json()["tasks"]
        names = [task["trajectory_id"] for task in tasks]
        assert names == (worlds[0].queue(account) if is_done else [None] * 8)
        assert [task["item"] for task in tasks] == [
            worlds[0].item(account, name) for name in worlds[0].queue(account)
        ]


def test_a_run_is_shown_with_its_goal_steps_and_questions(worlds):
    world = worlds[0]
    name = world.queue("ada")[0]
    page = world.client("ada").get(world.address("ada", name)).text
    story = world.services.trajectories.blind_story(name)
    assert story.entry.goal in page
    assert (story.entry.labels, story.experts, story.judges, story.runs) == (None, (), (), ())
    assert page.count('<section class="step"') == len(story.steps)
    assert page.count('class="outline"') == sum(step.outline is not None for step in story.steps)
    for question in ("Did the agent reach the goal?", "go round in circles", "How direct was its way?"):
        assert question in page
    assert page.count('value="unsure"') == 4
    assert "shirt" in page  # a guideline
    assert "checked" not in page[page.index("<body") :]


@pytest.mark.slow
def test_answers_are_saved_as_one_goes_shown_again_and_lead_to_the_next_run(tmp_path):
    world = World(tmp_path, True)
    client = world.client("ada")
    first, second = world.queue("ada")[:2]
    item = world.item("ada", first)
    saved = client.put("/api/annotate/answers", json={"item": item, "answers": {"repetition": "no"}})
    assert saved.json()["lasts"] is True
    page = client.get(world.address("ada", first)).text
    assert re.findall(r'name="(\w+)" value="(\w+)" checked', page) == [("repetition", "no")]
    seen = saved.json()["saved"]
    draft = {
        "item": item, "comment": "<b>ü</b>", "seconds": 9, "is_done": True, "seen": seen,
        "answers": {"success": "unsure", "side_effect": "no", "repetition": "no", "optimality": "3"},
    }  # fmt: skip
    done = client.put("/api/annotate/answers", json=draft).json()
    assert (done["next"], done["next_address"]) == (
        world.item("ada", second),
        world.address("ada", second),
    )
    assert "1</strong> of 8 done" in client.get("/annotate").text
    again = client.put("/api/annotate/answers", json={**draft, "comment": "other"})
    assert again.status_code == 409
    assert "another window" in again.json()["detail"]
    world.services.annotations.save(second, world.said(), 0, Actor("ada"))
    assert "&lt;b&gt;ü&lt;/b&gt;" in client.get("/discuss").text


@pytest.mark.slow
def test_maintainers_see_flags_and_gold_and_annotators_see_no_difference(tmp_path):
    world = World(tmp_path, True)
    grace, actions = world.client("grace"), world.services.annotations
    flagged, *rest = world.queue("ada")
    draft = {"item": world.item("ada", flagged), "flag": "<i>no pictures</i>", "is_skipped": True, "step": 2}
    assert world.client("ada").put("/api/annotate/answers", json=draft).status_code == 200
    assert world.queue("ada") == [*rest, flagged]  # it comes again at the end
    assert "skipped, flagged" in world.client("ada").get("/annotate").text
    assert "&lt;i&gt;no pictures&lt;/i&gt;" in grace.get("/discuss").text
    assert "no pictures" not in world.client("bob").get("/discuss").text
    for trajectory_id in rest:
        actions.save(trajectory_id, world.said(), 0, Actor("ada"))
    actions.invite("cleo", GRACE)
    known = world.queue("bob")[0]
    assert grace.post("/api/discuss/gold", json={"trajectory_id": known}).status_code == 409  # open questions
    for question in ("success", "side_effect", "repetition", "optimality"):
        actions.resolve(known, question, "4" if question == "optimality" else "yes", "seen", GRACE)
    assert grace.post("/api/discuss/gold", json={"trajectory_id": known}).status_code == 200
    said = {"split": "test", "most": "9", "percent_twice": "0", "percent_gold": "25", "seed": "1"}
    assert grace.post("/api/discuss/assign", json=said).status_code == 200
    cleo = world.client("cleo")
    assert known in world.queue("cleo")
    for trajectory_id in world.queue("cleo"):
        answer = cleo.get(world.address("cleo", trajectory_id))
        assert "gold" not in (answer.text.partition("<main")[2] + cleo.get("/api/annotate").text).lower()
        actions.save(trajectory_id, world.said(), 0, Actor("cleo"))
    assert "gold" not in cleo.get("/discuss").text.partition("<main")[2].lower()
    row = grace.get("/discuss").text.partition('<tr data-gold="annotator-3">')[2].partition("</tr>")[0]
    # As known but for the side effect: decided yes, answered Unsure.
    assert re.findall(r">(\d of \d)<", row) == ["1 of 1", "0 of 1", "1 of 1", "1 of 1"]
    ended = grace.post("/api/discuss/gold", json={"trajectory_id": known, "gold": "no"})
    assert ended.status_code == 200


def test_answers_that_contradict_each_other_are_known_for_released_questions_only():
    suite = load_suite("sample")
    pairs = contradictions_of(suite)
    assert (("success", "yes"), ("optimality", "1")) in pairs
    assert len(pairs) == 3
    without = replace(suite, targets=[each for each in suite.targets if each.name != "optimality"])
    assert contradictions_of(without) == []


def test_the_time_that_the_rest_takes_follows_from_the_median():
    def task(seconds: float | None) -> AssignedTask:
        saved = seconds and SavedAnswers(seconds=seconds, is_done=True, at=datetime.now(UTC), sequence=1)
        return AssignedTask("webarena/a/1", 1, saved or None)

    assert describe_time([task(None)]) == ""
    # 60 + 120 + 600 seconds are 13 minutes; two more at a median of two minutes are four.
    took = [task(60), task(120), task(600)]
    assert describe_time([*took, task(None), task(None)]) == "13 min spent, about 4 min left"
    assert describe_time(took) == "13 min spent"
    assert describe_time([task(9_000)]) == "2.5 h spent"


def test_a_page_of_another_site_saves_and_decides_nothing(worlds):
    client = worlds[0].client("grace")
    client.headers["sec-fetch-site"] = "cross-site"
    assert client.put("/api/annotate/answers", json={"item": "x"}).status_code == 401
    assert client.post("/api/discuss/invite", json={"account": "eve"}).status_code == 401


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"item": ""}, 422),
        ({"answers": "SECRET"}, 422),
        ({"answers": {"success": ["SECRET"]}}, 422),
        ({"answers": {"success": "SECRET"}}, 409),
        ({"answers": {"SECRET": "yes"}}, 409),
        ({"comment": "SECRET" * 2_000}, 409),
        ({"comment": "SECRET" * 20_000}, 413),
        ({"outcome": "SECRET"}, 422),
    ],
)
def test_no_refusal_repeats_an_answer(worlds, body, status):
    item = worlds[0].item("ada", worlds[0].queue("ada")[0])
    answer = worlds[0].client("ada").put("/api/annotate/answers", json={"item": item, **body})
    assert answer.status_code == status
    assert "SECRET" not in answer.text


def test_who_is_not_invited_gets_no_page(worlds):
    assert worlds[0].client().get("/annotate").status_code == 401
    stranger = worlds[0].client("eve")
    assert [stranger.get(path).status_code for path in ("/annotate", "/discuss")] == [403, 403]
    assert stranger.get("/api/me").json()["is_annotator"] is False
    assert worlds[0].client("Ada").get("/api/me").json()["is_annotator"] is True


@pytest.mark.slow
def test_maintainers_see_who_needs_training_and_on_what(tmp_path):
    suite = load_suite(write_suite(tmp_path))
    settings = settings_for(tmp_path, tmp_path / "state", maintainers="grace")
    service = SubmissionsApp(settings)
    services = Services(service, Explorer(settings, service))
    people = ("ada", "bob", "eve")
    for who in people:
        services.annotations.invite(who, GRACE)
    answers = {"success": "yes", "side_effect": "no", "repetition": "no", "optimality": "4"}
    wrong = {**answers, "success": "no"}
    # Three by three, ten trajectories a pair; Eve never agrees on success
    services.annotations.import_answers(
        [
            Annotation(trajectory.trajectory_id, who, wrong if who == "eve" else answers)
            for number, trajectory in enumerate(suite.split("test"))
            for who in people
            if who != people[number % 3]
        ],
        GRACE,
    )
    app = rest_app(service)
    add_routes(app, services, PageFrame(StaticAssets()))
    client = TestClient(app, base_url=ORIGIN, headers={"sec-fetch-site": "same-origin"})
    client.post("/sign-in", data={"name": "grace"}, follow_redirects=False)
    page = client.get("/discuss").text
    assert re.findall(r'data-training="([^"]*)"', page) == ["annotator-3"]
    assert (
        "match those of others in 0.0 % of 20 pairs; the others agree with each other in 100.0 % of 10."
        in page
    )
    found = client.get("/api/discuss/agreement").json()["questions"]["success"]["by_annotator"]
    assert [each["needs_training"] for each in found] == [False, False, True]


def test_who_misses_gold_items_is_named_at_the_question():
    found = GoldAgreement("annotator-1", "ada", 20, {"success": 10}, ("success",))
    questions = [question for question in default_targets() if question.name in ("success", "side_effect")]
    page = render(
        "labels/discuss_items.html", questions=questions, gold=[found], flags=(), gold_items=(),
        gold_candidates=(),
    )  # fmt: skip
    cells = re.findall(r'<td class="number">(.*?)</td>', page)
    assert cells == ["20", "<strong>needs training</strong> 10 of 20", "0 of 20"]
