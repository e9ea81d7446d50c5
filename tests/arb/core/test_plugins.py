from importlib.metadata import EntryPoint

import pytest

from arb.core import plugins
from arb.judges import registry
from arb.judges.endpoints.providers import Provider, catalog_providers, find_providers
from arb.judges.registry import catalog_judges, digest_of_files, entries, full_name
from arb.judges.types import Answer, JudgeSession, ModelSettings, View, Wants
from dataset_script.sources import open_source
from dataset_script.sources.problems import SourceError

OUR_SERVER = Provider(base_url="http://127.0.0.1:8000/v1", needs_key=False)


class PluginJudge:
    name = "Plug-in judge"
    inputs = "nothing"
    calls = "0"
    source = "a test"
    wants = Wants()
    models = {"judge": "some-model"}  # noqa: RUF012
    prompts_hash = ""

    def ask(self, view: View) -> JudgeSession:
        yield from ()
        return Answer("ok", success=True)


class SameName(PluginJudge):
    name = "aer-c"


def forget() -> None:
    for cached in (plugins._entry_points, plugins._load, registry.entries):
        cached.cache_clear()


@pytest.fixture
def installed(monkeypatch):
    """Pretend that packages with these entry points are installed."""

    def install(group: str, **values: str) -> None:
        points = [EntryPoint(name, value, group) for name, value in values.items()]
        for point in points:
            vars(point)["dist"] = object()
        monkeypatch.setattr(
            plugins, "entry_points", lambda group: [each for each in points if each.group == group]
        )
        forget()

    yield install
    monkeypatch.undo()
    forget()


def test_a_judge_of_a_package_comes_after_the_catalogue(installed):
    installed("arb.judges", mine=f"{__name__}:PluginJudge")
    *ours, added = entries()
    assert tuple(ours) == catalog_judges()
    assert (added.judge.name, added.is_plugin) == ("Plug-in judge", True)
    assert full_name(added.judge, {"judge": ModelSettings("other-model")}) == "Plug-in judge"
    assert digest_of_files(["plug-in judge"]) is not None and digest_of_files(["aer-c"]) is None


@pytest.mark.parametrize(
    ("value", "warning"),
    [
        ("no_such_module:Judge", "No module named 'no_such_module'"),
        (f"{__name__}:SameName", "there is already a judge 'aer-c'"),
        ("json:dumps", "lacks name, inputs, calls"),
    ],
)
def test_a_judge_that_cannot_be_used_is_left_out_with_one_warning(installed, caplog, value, warning):
    installed("arb.judges", mine=value)
    assert entries() == catalog_judges()
    (record,) = caplog.records
    assert warning in record.getMessage() and "mine" in record.getMessage()


def test_an_entry_point_with_a_name_of_ours_is_left_out(installed, caplog):
    installed("arb.sources", released="json:dumps")
    assert dict(plugins.load_plugins("arb.sources"))["released"].kind == "released"
    assert (
        "entry point released of arb.sources is ignored: json:dumps has a name that is already in use"
        in caplog.text
    )


def test_a_source_that_is_no_source_is_named_and_the_others_are_tried(installed, tmp_path, caplog):
    installed("arb.sources", mine="json:dumps")
    with pytest.raises(SourceError):
        open_source(tmp_path)
    assert "entry point mine of arb.sources is ignored" in caplog.text


def test_a_provider_is_added_under_the_name_of_its_entry_point(installed, caplog):
    installed("arb.providers", ours=f"{__name__}:OUR_SERVER", wrong="json:dumps")
    found = find_providers()
    assert found["ours"] == OUR_SERVER and {*found} == {*catalog_providers(), "ours"}
    assert "entry point wrong of arb.providers is ignored" in caplog.text
