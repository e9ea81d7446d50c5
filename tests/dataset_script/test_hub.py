"""Publishing with the Hub's own client against a Hub on this machine, faults included."""

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from huggingface_hub import HfApi
from typer.testing import CliRunner

from arb.core.hub import PAUSES, HubError, PublishError
from dataset_script import repository
from dataset_script.__main__ import app
from dataset_script.repository import LABELS_IN_REPO, Publisher
from dataset_script.verify import check
from tests.support.hub_server.answers import Account
from tests.support.hub_server.server import running_hub

REPO, LABELS_REPO = "maintainer/agent-reward-bench", "maintainer/test-labels"
CARD = b"---\nlicense: unknown\nconfigs:\n- config_name: trajectories\n---\n# AgentRewardBench\n"
LABELS = b"trajectory_id,success\nwebarena/agent-a/webarena.1,planted-label\n"
COMMIT = "/api/datasets/maintainer/agent-reward-bench/commit/main"


@pytest.fixture
def hub(monkeypatch):
    with running_hub(monkeypatch) as server:
        yield server


@pytest.fixture
def built(tmp_path):
    """A folder as a build leaves it, and a way to build it anew with other data."""

    def build(data: dict[str, bytes]) -> Path:
        folder = tmp_path / "built"
        for path in folder.glob("data/*/*"):
            path.unlink()
        for name, content in data.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        files = {name: {"sha256": hashlib.sha256(content).hexdigest()} for name, content in data.items()}
        (folder / "manifest.json").write_text(json.dumps({"format": 1, "files": files}))
        (folder / "README.md").write_bytes(CARD)
        (folder / "eval.yaml").write_text("name: AgentRewardBench\n")
        (folder / "index.parquet").write_bytes(b"index")
        (folder / "croissant.json").write_text("{}")
        return folder

    return build


DATA = {
    "data/trajectories/dev-00000-of-00001.parquet": b"dev" * 1000,
    "data/trajectories/test-00000-of-00001.parquet": b"test" * 1000,
}


@pytest.fixture
def folder(built) -> Path:
    return built(DATA)


@pytest.fixture
def labels_file(tmp_path) -> Path:
    path = tmp_path / "labels.csv"
    path.write_bytes(LABELS)
    return path


@pytest.fixture
def pauses() -> list[float]:
    """The seconds that a publication waited for the Hub."""
    return []


@pytest.fixture
def publish(hub, pauses):
    """Publish as the maintainer, with a verification that passes."""

    def run(folder, repo=REPO, *more, token="hf_maintainer", verify=lambda _folder: passed(), say=print):
        api = HfApi(endpoint=hub.url, token=token)
        return Publisher(api, say, pauses.append).publish(folder, repo, *more, verify=verify)

    return run


def passed():
    return SimpleNamespace(ok=True, findings=(), to_accept=())


def content(hub, repo=REPO) -> dict[str, bytes]:
    """The head's files without the one that every repository starts with."""
    files = hub.api.repositories[repo].head.files
    return {
        path: file.data if isinstance(file.data, bytes) else file.data.read_bytes()
        for path, file in files.items()
        if path != ".gitattributes"
    }


def commits(hub, repo=REPO) -> int:
    """Commits after the first, which the Hub makes itself."""
    return len(hub.api.repositories[repo].commits) - 1


# what is published


def test_data_card_and_eval_yaml_are_one_commit(hub, publish, folder):
    (done,) = publish(folder)
    expected = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.*")}
    assert content(hub) == expected and len(expected) == 7
    assert commits(hub) == 1
    assert done.commit == hub.api.repositories[REPO].head.oid
    assert done.written == tuple(sorted(expected)) and done.removed == ()
    assert not hub.api.repositories[REPO].private


def test_the_published_card_loads_the_dataset_by_its_name_on_the_hub(hub, publish, built):
    folder = built(DATA)
    with (folder / "README.md").open("a") as card:
        card.write('dataset = load_dataset("own-suite")\n')
    publish(folder)
    assert f'load_dataset("{REPO}")'.encode() in content(hub)["README.md"]


def test_labels_go_into_a_private_repository_of_their_own_and_nowhere_else(hub, publish, folder, labels_file):
    labels, public = publish(folder, REPO, LABELS_REPO, labels_file)
    assert (labels.repo, public.repo) == (LABELS_REPO, REPO)
    assert hub.api.repositories[LABELS_REPO].private
    assert content(hub, LABELS_REPO) == {LABELS_IN_REPO: LABELS}
    assert commits(hub, LABELS_REPO) == commits(hub) == 1
    assert not any(b"planted-label" in data for data in content(hub).values())


def test_publishing_the_same_again_makes_no_commit(hub, publish, folder, labels_file):
    first = publish(folder, REPO, LABELS_REPO, labels_file)
    second = publish(folder, REPO, LABELS_REPO, labels_file)
    assert commits(hub) == commits(hub, LABELS_REPO) == 1
    assert [done.committed for done in (*first, *second)] == [True, True, False, False]
    assert [done.commit for done in second] == [done.commit for done in first]


def test_a_new_build_writes_what_changed_and_removes_what_is_gone(hub, publish, built):
    publish(built({**DATA, "data/steps/dev-00000-of-00001.parquet": b"steps"}))
    hub.commit(REPO, {"LICENSE": b"by hand"})
    changed = "data/trajectories/dev-00000-of-00001.parquet"
    (done,) = publish(built({**DATA, changed: b"other"}))
    assert done.written == (changed, "manifest.json")
    assert done.removed == ("data/steps/dev-00000-of-00001.parquet",)
    assert content(hub)[changed] == b"other"
    assert content(hub)["LICENSE"] == b"by hand"  # what no publication put there stays
    assert ".gitattributes" in hub.api.repositories[REPO].head.files
    assert commits(hub) == 3  # the first, the one by hand, this one


# what is refused, before anything is sent


def test_what_verify_rejects_is_not_sent(hub, publish, folder):
    def finding(number, level="error"):
        return SimpleNamespace(level=level, file=f"data/{number}.parquet", message="a reward")

    findings = [finding("w", level="warning"), *map(finding, range(30))]
    with pytest.raises(PublishError) as refused:
        publish(folder, verify=lambda _folder: SimpleNamespace(ok=False, findings=findings))
    message = str(refused.value)
    assert "does not pass `arb data verify`: data/0.parquet: a reward; " in message
    assert message.endswith("data/19.parquet: a reward; and 10 more")  # 30 errors, 20 told
    assert hub.seen == []


def test_warnings_about_words_are_sent_once_they_are_accepted(hub, publish, folder):
    names = tuple(f"reward_words:a/b/{number}" for number in range(22))
    with pytest.raises(PublishError, match=r"--accept reward_words:a/b/19 and 2 more that it lists$"):
        publish(folder, verify=lambda _folder: SimpleNamespace(ok=True, findings=(), to_accept=names))
    assert hub.seen == []


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda f: (f / "data" / "labels.csv").write_bytes(LABELS),
            "data/labels.csv: was not written by a build",
        ),
        (lambda f: (f / "eval.yaml").unlink(), "eval.yaml: is missing; build again"),
        (lambda f: (f / "manifest.json").write_text("{"), "manifest.json cannot be read"),
        (lambda f: (f / "manifest.json").write_text("[]"), "manifest.json cannot be read"),
        (lambda f: (f / "link").symlink_to("/etc/hostname"), "link: was not written by a build"),
    ],
)
def test_a_folder_that_is_not_as_built_is_refused(hub, publish, folder, damage, message):
    damage(folder)
    with pytest.raises(PublishError) as refused:
        publish(folder)
    assert message in str(refused.value)
    assert "planted-label" not in str(refused.value)
    assert hub.seen == []


def test_labels_are_never_put_into_a_public_repository(hub, publish, folder, labels_file):
    hub.repository(LABELS_REPO, private=False)
    with pytest.raises(PublishError, match="is public; name a private repository for the test labels"):
        publish(folder, REPO, LABELS_REPO, labels_file)
    with pytest.raises(PublishError, match="name a different repository for --private-labels"):
        publish(folder, REPO, REPO, labels_file)
    assert REPO not in hub.api.repositories
    assert not hub.requests("POST", "/commit/|/preupload/|/lfs/")


def test_labels_inside_the_folder_to_publish_are_refused(hub, publish, built):
    folder = built({**DATA, "data/annotations/dev-00000-of-00001.parquet": LABELS})
    with pytest.raises(PublishError, match="is in the folder to publish"):
        publish(folder, REPO, LABELS_REPO, folder / "data/annotations/dev-00000-of-00001.parquet")
    assert hub.seen == []


@pytest.mark.parametrize(
    ("repo", "more", "message"),
    [
        ("agent-reward-bench", (), "write OWNER/NAME"),
        ("maintainer/what is this", (), "write OWNER/NAME"),
        (REPO, (LABELS_REPO,), "needs a file of labels; add --labels FILE"),
        (REPO, (LABELS_REPO, Path("absent.csv")), "absent.csv: this file of labels does not exist"),
    ],
)
def test_names_that_cannot_be_are_refused(hub, publish, folder, repo, more, message):
    with pytest.raises(PublishError, match=message):
        publish(folder, repo, *more)
    assert hub.seen == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"trajectory_id,success\n",
        b'{"trajectory_id": "a/b/c", "success": true}\n{}\n',
        b"PAR1\0\n\xff",
        b"PK\n1",
    ],
)
def test_a_file_that_holds_no_labels_is_refused_before_anything_is_sent(
    hub, publish, folder, content, tmp_path
):
    (tmp_path / "wrong.csv").write_bytes(content)
    with pytest.raises(
        PublishError, match=r"wrong.csv is not a file of labels: it needs a header"
    ) as refused:
        publish(folder, REPO, LABELS_REPO, tmp_path / "wrong.csv")
    assert "true" not in str(refused.value) and hub.seen == []


def test_a_repository_with_data_of_another_origin_is_not_touched(hub, publish, folder):
    hub.commit(REPO, {"data/annotations.csv": b"theirs"})
    with pytest.raises(PublishError, match="contains data that this command did not publish"):
        publish(folder)
    assert content(hub) == {"data/annotations.csv": b"theirs"}


def test_a_card_that_the_hub_does_not_accept_is_reported_and_nothing_is_committed(hub, publish, folder):
    (folder / "README.md").write_bytes(b"---\nlicense: [\n---\n")
    with pytest.raises(PublishError, match=r"Invalid metadata in README\.md"):
        publish(folder)
    assert commits(hub) == 0


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (False, "publishing needs a token with write access; set HF_TOKEN"),
        ("hf_revoked", "the owner of HF_TOKEN: the Hub answered 401 .*set HF_TOKEN"),
        ("hf_stranger", f"{REPO}: the Hub answered 40[34]"),
        ("hf_reader", f"{REPO}: the Hub answered 403 .HF_TOKEN does not have permission"),
    ],
)
def test_a_token_that_may_not_write_is_reported_at_once(hub, publish, folder, pauses, token, message):
    hub.api.accounts["hf_stranger"] = Account("stranger")
    hub.api.accounts["hf_reader"] = Account("maintainer", may_write=False)
    with pytest.raises(HubError, match=message) as refused:
        publish(folder, token=token)
    assert "hf_" not in str(refused.value)
    assert pauses == []
    assert REPO not in hub.api.repositories


def test_a_file_that_changed_since_it_was_verified_is_not_sent(hub, publish, folder):
    name = next(iter(DATA))

    def verify(built):
        (built / name).write_bytes(b"something else")
        return passed()

    with pytest.raises(PublishError, match=f"{name}: changed during the publication"):
        publish(folder, verify=verify)
    assert commits(hub) == 0 and not hub.requests("PUT", "/upload/")


# what the Hub does


def test_a_commit_by_somebody_else_meanwhile_is_kept(hub, publish, folder):
    hub.fail("POST", COMMIT, first=lambda: hub.commit(REPO, {"LICENSE": b"theirs"}))
    (done,) = publish(folder)
    assert content(hub)["LICENSE"] == b"theirs"
    assert set(content(hub)) == {"LICENSE", *done.written}
    assert len(hub.requests("POST", COMMIT)) == 2  # 412, then on the new head
    assert commits(hub) == 2


def test_what_somebody_else_changed_meanwhile_is_not_overwritten(hub, publish, folder):
    publish(folder)
    (folder / "README.md").write_bytes(CARD + b"ours\n")
    hub.fail("POST", COMMIT, first=lambda: hub.commit(REPO, {"README.md": CARD + b"theirs\n"}))
    with pytest.raises(PublishError, match=r"somebody changed README\.md during this publication"):
        publish(folder)
    assert content(hub)["README.md"] == CARD + b"theirs\n"
    publish(folder)  # asked again, knowing
    assert content(hub)["README.md"] == CARD + b"ours\n"


@pytest.mark.parametrize("fault", [{"status": 500, "after": True}, {"cut": 5}])
def test_an_answer_lost_after_the_commit_was_made_makes_no_second_one(hub, publish, folder, fault):
    hub.fail("POST", COMMIT, **fault)
    (done,) = publish(folder)
    assert commits(hub) == 1
    assert done.committed and done.commit == hub.api.repositories[REPO].head.oid
    assert len(hub.requests("POST", COMMIT)) == 1


def test_a_500_before_the_commit_is_told_and_tried_again(hub, publish, folder, pauses):
    hub.fail("POST", COMMIT, status=500, times=2)
    lines = []
    publish(folder, say=lines.append)
    assert commits(hub) == 1
    assert pauses == [1, 2]
    assert lines[0] == "the Hub answered 500 (a server error); trying again in 1 s"


@pytest.mark.parametrize(
    ("headers", "pause"),
    [
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": "9999"}, 300),  # the Hub's window is five minutes
        ({"RateLimit": '"api";r=0;t=55'}, 55),
        ({"RateLimit": '"api";r=12;t=55'}, 1),  # requests are left, so this is no limit of the window
        ({}, 1),
    ],
)
@pytest.mark.parametrize(
    ("method", "path"), [("POST", COMMIT), ("GET", "whoami"), ("POST", "repos/create"), ("GET", f"{REPO}$")]
)
def test_too_many_requests_wait_as_the_hub_says(hub, publish, folder, pauses, headers, pause, method, path):
    hub.fail(method, path, status=429, headers=headers)
    publish(folder)
    assert commits(hub) == 1
    assert pauses == [pause]


def test_a_hub_that_stays_down_is_given_up_on_with_a_message(hub, publish, folder, pauses):
    hub.fail("POST", COMMIT, status=503, times=100)
    with pytest.raises(HubError, match=r"the Hub answered 503 \(a server error\); run again later"):
        publish(folder)
    assert pauses == list(PAUSES)
    assert len(hub.requests("POST", COMMIT)) == len(PAUSES) + 1


def test_an_upload_that_is_cut_is_sent_again(hub, publish, folder):
    upload = hub.fail("PUT", "/upload/", cut=0)
    publish(folder)
    assert upload.happened == 1
    assert commits(hub) == 1 and set(DATA) < set(content(hub))


def test_an_upload_that_is_refused_is_reported_without_its_signed_address(hub, publish, folder):
    hub.fail("PUT", "/upload/", status=403, times=100)
    with pytest.raises(HubError, match="the Hub answered 403") as refused:
        publish(folder)
    assert "Signature" not in str(refused.value)
    assert commits(hub) == 0


def test_the_token_is_in_no_message_and_only_the_hub_has_it(hub, publish, folder, labels_file, caplog, capfd):
    caplog.set_level("DEBUG")
    hub.fail("POST", COMMIT, status=500)
    publish(folder, REPO, LABELS_REPO, labels_file)
    said = capfd.readouterr()
    assert "hf_maintainer" not in caplog.text + said.out + said.err
    assert "planted-label" not in caplog.text + said.out + said.err
    assert {seen.token for seen in hub.seen if seen.place == "cdn"} == {None}


def test_more_files_than_the_hub_takes_in_a_commit_are_refused(hub, publish, folder, monkeypatch):
    monkeypatch.setattr(repository, "MOST_FILES", 4)
    with pytest.raises(PublishError, match="has 7 files; the Hub takes 4 per commit"):
        publish(folder)
    assert hub.seen == []


# the command


@pytest.fixture
def run(hub, folder, monkeypatch):
    """`publish` on the folder, with a verification that passes."""
    monkeypatch.setattr(check, "verify", lambda _folder, **_options: passed())
    monkeypatch.setenv("HF_TOKEN", "hf_maintainer")

    def publish_command(*more: str):
        return CliRunner().invoke(app, ["publish", str(folder), "--repo", REPO, *more])

    return publish_command


def test_the_command_publishes_and_says_so_and_then_has_nothing_to_do(hub, run, labels_file, monkeypatch):
    monkeypatch.setenv("ARB_LABELS", f"csv:{labels_file}")
    first = run("--private-labels", LABELS_REPO)
    assert first.exit_code == 0, first.output
    head = hub.api.repositories[REPO].head.oid
    assert f"{REPO} at {head}: 7 files written, 0 removed" in first.stdout
    assert content(hub, LABELS_REPO) == {LABELS_IN_REPO: LABELS}
    assert f"{REPO} at {head}: was there already; no commit" in run().stdout
    assert "planted-label" not in first.output and "hf_maintainer" not in first.output


def test_the_command_verifies_against_the_suite_that_is_named(run, folder, monkeypatch):
    asked = []
    monkeypatch.setattr(check, "verify", lambda where, **more: asked.append((where, more)) or passed())
    assert run("--suite", "localshop", "--accept", "reward_words:a/b/c").exit_code == 0
    ((where, options),) = asked
    assert (where, options["suite"].name) == (folder, "localshop")
    assert (options["accept"], options["allow_missing"]) == (["reward_words:a/b/c"], ())
    assert "no suite 'absent'" in run("--suite", "absent").stderr


def test_the_command_refuses_in_one_line(run, folder, monkeypatch):
    (folder / "eval.yaml").unlink()
    result = run()
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ") and len(result.stderr.splitlines()) == 1
    monkeypatch.delenv("HF_TOKEN")
    (folder / "eval.yaml").write_text("name: x")
    assert "set HF_TOKEN" in run().stderr
