"""Tests of deployments with the Hub's own client to a local Hub: what is made, refused and repeated."""

import dataclasses
import tomllib
from importlib.metadata import version
from io import BytesIO

import pytest
import yaml
from huggingface_hub import HfApi
from packaging.requirements import Requirement
from PIL import Image

from arb.core.hub import HubError, PublishError
from space.deploy.deployer import GRADIO, Deployer
from space.deploy.thumbnail import draw_thumbnail
from tests.space.deploy.conftest import BOARD, DATA, RECORDS, SPACE, TOKEN, content, space_of
from tests.support.hub_server.spaces import SpaceRepository
from tests.support.running_space import REPOSITORY

REQUIRES_PYTHON = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["requires-python"]


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def deploy(hub, deployment, files, said):
    def run(token=TOKEN, files=files, **changes):
        deployer = Deployer(HfApi(endpoint=hub.url, token=token), said.append, lambda _seconds: None)
        return deployer.deploy(dataclasses.replace(deployment, **changes), files)

    return run


def writes(hub) -> list[str]:
    """Return the requests that may change something on the Hub, without queries for its files."""
    asked = [seen for seen in hub.seen if seen.method != "GET" and seen.method != "HEAD"]
    return [seen.path for seen in asked if "/preupload/" not in seen.path and "/paths-info/" not in seen.path]


# The result


def test_code_card_and_entry_are_one_commit(hub, deploy, files):
    done = deploy()
    space = space_of(hub)
    assert {name: data for name, data in content(space).items() if name in files} == {
        "space/app.py": b"x = 1\n",
        "requirements.txt": b"gradio\n",
    }
    assert set(content(space)) == {*files, "README.md", "app.py", "thumbnail.png"}
    assert len(space.commits) == 3  # two of the Hub's own when it made the Space, and ours
    assert done.files.commit == space.head.oid
    assert b'"serve", "--host", "0.0.0.0"' in content(space)["app.py"]


def test_the_card_tells_the_hub_how_to_run_it_and_to_sign_people_in(hub, deploy):
    deploy()
    card = content(space_of(hub))["README.md"].decode()
    block = yaml.safe_load(card.split("---")[1])
    assert {name: block[name] for name in ("sdk", "app_file", "hf_oauth", "pinned")} == {
        "sdk": "gradio", "app_file": "app.py", "hf_oauth": True, "pinned": False,
    }  # fmt: skip
    assert space_of(hub).sdk == "gradio"
    assert block["sdk_version"] == GRADIO == version("gradio")  # the version that these tests run with
    assert Requirement(f"python{REQUIRES_PYTHON}").specifier.contains(block["python_version"])
    assert {"leaderboard", "mcp-server"} <= set(block["tags"])
    assert block["thumbnail"] == f"https://huggingface.co/spaces/{SPACE}/resolve/main/thumbnail.png"
    assert block["hf_oauth_expiration_minutes"] == 480
    assert len(block["short_description"]) <= 60  # the Hub refuses a longer one
    assert DATA in card and BOARD in card and RECORDS not in card


def test_the_thumbnail_is_a_small_picture_with_the_title(hub, deploy, deployment):
    deploy()
    content_of = content(space_of(hub))["thumbnail.png"]
    assert (Image.open(BytesIO(content_of)).size, len(content_of) < 50_000) == ((1200, 648), True)
    noun = deployment.profile.noun
    assert content_of == draw_thumbnail(deployment.title, noun) != draw_thumbnail("Another suite", noun)


def test_a_docker_space_has_an_image_and_becomes_a_gradio_space_by_the_next_deployment(hub, deploy):
    deploy(sdk="docker")
    assert space_of(hub).sdk == "docker"
    block = yaml.safe_load(content(space_of(hub))["README.md"].decode().split("---")[1])
    assert (block["sdk"], block["app_port"], "sdk_version" in block) == ("docker", 7860, False)
    deploy()
    assert "Dockerfile" not in content(space_of(hub))
    assert "sdk: gradio" in content(space_of(hub))["README.md"].decode()


def test_the_image_has_the_requirements_first_and_starts_the_entry_as_a_user_that_may_write(hub, deploy):
    deploy(sdk="docker")
    steps = content(space_of(hub))["Dockerfile"].decode().splitlines()
    order = ["COPY requirements.txt .", "COPY --chown=user . .", "USER user", 'CMD ["python", "app.py"]']
    assert [step for step in steps if step in order] == order
    assert "RUN useradd --create-home --uid 1000 user" in steps  # the Hub runs it as 1000


def test_the_records_are_private_and_the_board_is_public(hub, deploy):
    assert deploy().made == (SPACE, RECORDS, BOARD)
    assert hub.api.repositories[RECORDS].private
    assert not hub.api.repositories[BOARD].private
    assert not space_of(hub).private


def test_the_variables_say_what_is_served_and_where_records_are(hub, deploy):
    deploy()
    assert space_of(hub).variables == {
        "ARB_SUITE": "agent-reward-bench", "ARB_LABELS": "wheel", "ARB_DATA_DIR": "/dataset",
        "ARB_RECORDS_REPO": RECORDS, "ARB_BOARD_REPO": BOARD, "ARB_MAINTAINERS": "ada,bob",
    }  # fmt: skip
    deploy(maintainers=())
    assert space_of(hub).variables["ARB_MAINTAINERS"] == "maintainer"  # the owner of HF_TOKEN


def test_the_dataset_is_mounted_beside_what_else_is(hub, deploy):
    deploy()
    ours = {"type": "dataset", "source": DATA, "mountPath": "/dataset", "readOnly": True}
    assert space_of(hub).volumes == [ours]
    bucket = {"type": "bucket", "source": "maintainer/kept", "mountPath": "/data"}
    space_of(hub).volumes = [bucket, {**ours, "source": "maintainer/old"}]
    assert deploy().mounted
    assert space_of(hub).volumes == [bucket, ours]


# secrets


def test_secrets_are_named_and_none_is_sent(hub, deploy, monkeypatch):
    monkeypatch.setenv("ARB_SECRET", "46dc5676065b983fb6ffc4bc19885c32")
    assert set(deploy().secrets) == {"HF_TOKEN", "ARB_SECRET"}
    assert space_of(hub).secrets == {}
    assert not [path for path in writes(hub) if path.endswith("/secrets")]
    assert not any(
        b"46dc5676065b983fb6ffc4bc19885c32" in data or b"hf_maint" in data
        for data in content(space_of(hub)).values()
    )
    assert "hf_maintainer" not in str(space_of(hub).variables)


def test_secrets_that_are_set_are_not_asked_for_again(hub, deploy):
    deploy()
    space_of(hub).secrets["HF_TOKEN"] = "x"
    assert set(deploy().secrets) == {"ARB_SECRET"}


# again


def test_a_second_run_changes_nothing(hub, deploy, said):
    first = deploy()
    hub.seen.clear()
    second = deploy()
    assert writes(hub) == []
    assert second.files.commit == first.files.commit and not second.files.committed
    assert second.made == second.variables == ()


def test_a_change_is_one_commit_and_what_is_gone_is_removed(hub, deploy, files, said, tmp_path):
    deploy()
    space = space_of(hub)
    hub.commit(f"spaces/{SPACE}", {"notes-of-the-owner.md": b"keep me"})
    (tmp_path / "space/app.py").write_text("x = 2\n")
    before = len(space.commits)
    done = deploy(files={"space/app.py": files["space/app.py"]}, board=None)
    assert (done.files.written, done.files.removed) == (("README.md", "space/app.py"), ("requirements.txt",))
    assert len(space.commits) == before + 1 and f"{SPACE}: 1 file, 0.0 MB" in said
    assert "notes-of-the-owner.md" in content(space)
    assert "ARB_BOARD_REPO" not in space.variables  # no longer wanted


def test_a_variable_of_the_maintainers_own_stays(hub, deploy):
    deploy()
    space_of(hub).variables |= {"ARB_CHECKS_A_MINUTE": "5", "ARB_SUITE": "changed by hand"}
    assert deploy().variables == ("ARB_SUITE",)
    assert space_of(hub).variables["ARB_CHECKS_A_MINUTE"] == "5"


def test_a_hub_that_commits_and_then_fails_gets_no_second_commit(hub, deploy):
    hub.api.repositories[f"spaces/{SPACE}"] = SpaceRepository(f"spaces/{SPACE}")
    hub.fail("POST", f"/api/spaces/{SPACE}/commit", status=500, after=True)
    done = deploy()
    assert len(space_of(hub).commits) == 3
    assert done.files.commit == space_of(hub).head.oid


# Refusals before anything is written


def refused(hub, deploy, error, **options) -> str:
    with pytest.raises(error) as problem:
        deploy(**options)
    assert writes(hub) == []
    assert f"spaces/{SPACE}" not in hub.api.repositories
    return str(problem.value)


def test_records_do_not_go_into_a_public_repository(hub, deploy):
    hub.repository(RECORDS)
    hub.repository(BOARD, private=True)
    said = refused(hub, deploy, PublishError)
    assert f"{RECORDS}: is public" in said and f"{BOARD}: is private" in said  # all problems at once


@pytest.mark.parametrize(
    ("error", "options", "named"),
    [
        (PublishError, {"data": "maintainer/nothing"}, "maintainer/nothing: there is no such dataset"),
        (PublishError, {"labels": "hub:maintainer/none"}, "maintainer/none: there is no such dataset"),
        (HubError, {"token": False}, "set HF_TOKEN"),
    ],
)
def test_what_is_missing_is_named(hub, deploy, error, options, named):
    assert named in refused(hub, deploy, error, **options)


def test_labels_in_a_public_repository_are_refused(hub, deploy):
    hub.repository("maintainer/labels")
    said = refused(hub, deploy, PublishError, labels="hub:maintainer/labels/data/annotations.csv")
    assert "maintainer/labels: is public" in said


def test_a_token_that_the_hub_does_not_know_is_not_repeated(hub, deploy):
    said = refused(hub, deploy, HubError, token="hf_unknown")
    assert "set HF_TOKEN to a valid token" in said and "hf_unknown" not in said


@pytest.mark.parametrize(
    ("token", "space"), [("hf_reader", SPACE), (TOKEN, "another-organization/leaderboard")]
)
def test_a_space_that_the_token_may_not_create_leaves_no_other_repository(hub, deploy, token, space):
    with pytest.raises(HubError, match=f"{space}: .*HF_TOKEN does not have permission"):
        deploy(token=token, space=space)
    assert hub.api.repositories.keys() == {DATA}


def test_a_dataset_that_cannot_be_mounted_is_reported_and_the_rest_is_done(hub, deploy, said):
    hub.fail("PUT", f"/api/spaces/{SPACE}/volumes", status=403, times=9)
    done = deploy()
    assert not done.mounted and done.files.committed
    assert any("cannot be mounted" in line for line in said)
