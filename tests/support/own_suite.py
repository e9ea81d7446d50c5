"""docs/new_suite.md and docs/corrections.md as a reader follows them, on the sample's recordings.

They end with a leaderboard of one's own, one of whose labels is corrected.
"""

import json
import re
from pathlib import Path

import httpx

from arb.core.suites.profile import OPTIONAL_PAGES
from tests.space.test_another_suite import NAME, cut_citation
from tests.support.hub_server.answers import Account
from tests.support.hub_server.server import HubServer
from tests.support.pages import SERVE, Reader, lines_of

FOLLOWED = ("docs/new_suite.md", "docs/corrections.md")
TO_THE_HUB = {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "GRADIO_ANALYTICS_ENABLED": "False"}


def follow_own_suite(reader: Reader) -> None:
    """Follow both pages with one Space, which keeps running as the first page says."""
    guide, corrections = map(lines_of, FOLLOWED)
    assert guide.count(SERVE) == 1
    before, after = guide[: guide.index(SERVE)], guide[guide.index(SERVE) + 1 :]
    with HubServer() as hub:
        hub.api.accounts["hf_your_token"] = Account("you")
        reader.settings = {**TO_THE_HUB, "HF_ENDPOINT": hub.url}
        for line in before:
            reader.type(line)
        with (
            reader.serving() as address,
            httpx.Client(base_url=address, timeout=300, trust_env=False) as space,
        ):
            for line in after:
                reader.type(line)
            check_leaderboard(space, reader)
            check_name(space)
            disputed = dispute(space, reader)
            for line in corrections:
                reader.type(line)
            check_correction(reader, disputed)
        check_hub(hub, reader)
        check_dry_run(reader.said[guide[-1]])
        assert not NAME.search((reader.home / "space.log").read_text())


def dispute(space: httpx.Client, reader: Reader) -> str:
    """Report an error in a label of dev and let the maintainer correct it; return the run's id."""
    labels = (reader.folder / "../ours/our-bench/dev_labels.csv").read_text().splitlines()
    run = labels[1].partition(",")[0]
    signed = {"headers": {"Sec-Fetch-Site": "same-origin"}}
    space.post("/sign-in", data={"name": "ada"}, **signed)
    ours = {"trajectory_id": run, "question": "care", "answer": "unchecked", "text": "It never looked."}
    made = space.post("/api/disputes", json=ours, **signed)
    assert made.status_code == 201, made.text
    decision = {"decision": "corrected", "answer": "unchecked", "reason": "It never looked."}
    made = space.post(f"/api/maintain/disputes/{made.json()['dispute_id']}", json=decision, **signed)
    assert made.status_code == 200, made.text
    return run


def check_correction(reader: Reader, run: str) -> None:
    preview, published, listed = (reader.said[line] for line in lines_of(FOLLOWED[1])[:3])
    assert "applied: dispute 1" in preview and "Two runs ended on the wrong page" in listed, (
        preview,
        published,
    )
    dev = (reader.folder / "../ours/our-bench/dev_labels.csv").read_text()
    assert [line for line in dev.splitlines() if run in line and "unchecked" in line]


def check_leaderboard(space: httpx.Client, reader: Reader) -> None:
    """The Space serves the new suite, and its submitter finds the receipt."""
    health = space.get("/readyz").json()
    assert (health["status"], health["suite"], health["submissions"]) == ("ok", "our-bench", "open")
    versions = reader.said["arb submissions label-versions"]
    assert versions.startswith(health["label_version"])
    assert space.get("/api/board.json").json()["suite"] == "our-bench"
    (said,) = (said for line, said in reader.said.items() if "submissions submit" in line)
    submission = re.search(r"^predictions.jsonl submitted: (\S+), SHA-256 ", said, re.MULTILINE)[1]
    assert space.get(f"/mine/{submission}").status_code != 200  # not for everybody
    space.post("/sign-in", data={"name": "ada"}, headers={"Sec-Fetch-Site": "same-origin"})
    for page in ("/annotate", "/discuss", f"/mine/{submission}"):
        assert space.get(page).status_code == 200, page
    receipt = space.get(f"/api/submissions/{submission}").json()
    assert (receipt["judge"], receipt["account"], receipt["suite"]) == (
        "Our rules",
        "ada",
        "our-bench",
    )
    assert receipt["label_version"] == health["label_version"] and receipt["signature"]
    assert receipt["report"]["labels"]["success"]["overall"]["n"] == 52


def check_hub(hub: HubServer, reader: Reader) -> None:
    """The data and the Space are public without a label of test; the labels lie in the private repository."""
    repositories = hub.api.repositories
    private = {name for name, repository in repositories.items() if repository.private}
    assert private == {"you/our-bench-labels", "you/our-bench-records"}
    labels = (reader.folder / "../ours/labels.csv").read_bytes()
    kept = repositories["you/our-bench-labels"].head.files["data/annotations.csv"]
    assert bytes_of(kept.data) == labels
    data, space = repositories["you/our-bench"], repositories["spaces/you/our-leaderboard"]
    for public in (data, space):
        assert labels not in [bytes_of(file.data) for file in public.head.files.values()]
    card = bytes_of(data.head.files["README.md"].data).decode()
    for text in (card.partition("## Citation")[0], bytes_of(space.head.files["README.md"].data).decode()):
        assert "# Our Bench\n" in text and not NAME.search(text)
    assert "72 runs of four agents. Licence: CC BY 4.0." in card
    published = bytes_of(space.head.files["arb/core/suites/our-bench/dev_labels.csv"].data).decode()
    # A header; 20 dev trajectories, six of them annotated twice, and one decision.
    assert published.count("\n") == 1 + 27
    assert published.splitlines()[0].endswith(",annotator,report,care")
    for decided in ("careful/sample-forum.4,1,true,", "hasty/sample-map.3,1,false,"):
        assert f"/ScriptedAgent-{decided}" in published
    assert space.variables["ARB_LABELS"] == "hub:you/our-bench-labels"
    assert json.loads(bytes_of(data.head.files["manifest.json"].data))["suite"] == "our-bench"


def check_name(space: httpx.Client) -> None:
    """Every page of the menu is that of Our Bench, and annotators answer its own questions."""
    paths = set(re.findall(r'<li><a href="(/[a-z-]*)"', space.get("/").text))
    assert paths == {"/", "/compare", "/my-agent", "/trajectories", "/labels", "/about"}
    below = {f"/{name}" for name in OPTIONAL_PAGES} - paths - {"/paper"}
    others = (*below, "/annotate", "/discuss", "/mine", "/maintain", "/api", "/api/openapi.json")
    for path in (*sorted(paths), *others):
        text = space.get(path).text
        text = cut_citation(text)[0] if path == "/about" else text
        assert "Our Bench" in text and not NAME.search(text), path
    space.post("/sign-in", data={"name": "cleo"}, headers={"Sec-Fetch-Site": "same-origin"})
    item = space.get("/annotate", params={"item": space.get("/api/annotate").json()["next"]}).text
    assert "Did it check its work before it stopped?" in item and not NAME.search(item)


def check_dry_run(said: str) -> None:
    """It says how much goes where, and no file by its name."""
    assert re.search(r"^  arb/core/suites/our-bench/ +5 files", said, re.MULTILINE), said
    assert len(said.splitlines()) < 35 and ".py" not in said.replace("app.py", "")


def bytes_of(data: bytes | Path) -> bytes:
    return data if isinstance(data, bytes) else data.read_bytes()
