"""Find judges by name or by their address in Python code, and list them (``judges list``)."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import math
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeVar

import typer

from arb.core.cli import JsonOption, plain_console, print_json
from arb.core.console import text_table
from arb.core.lazy import lazy_imports
from arb.core.plugins import leave_out, load_plugins
from arb.judges.catalog.aer import AerJudge
from arb.judges.catalog.last_frames import BrowserUseJudge, OSRewardJudge
from arb.judges.catalog.nnetnav import NNetNavJudge
from arb.judges.catalog.rubric import RubricJudge
from arb.judges.catalog.simplified import SimplifiedJudge
from arb.judges.catalog.steps import StepJudge
from arb.judges.catalog.tool_judge import ToolJudge
from arb.judges.catalog.webjudge import WebJudge
from arb.judges.contract import describe_fault
from arb.judges.types import (
    AMOUNTS,
    Answer,
    AnyJudge,
    JudgeSession,
    ModelSettings,
    View,
    Wants,
    models_of,
    traits_of,
)
from arb.judges.wrappers import JudgeWrapper

with lazy_imports():
    from rich import box

    from arb.judges.catalog import official
    from dataset_script.sources import released_files

if TYPE_CHECKING:
    from arb.core.settings import Settings

_T = TypeVar("_T")
_KEY: Final = re.compile(r"[a-z0-9.-]+")
_MODULE: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_JUDGE_ATTRIBUTES: Final = ("name", "inputs", "calls", "source", "wants", "models", "prompts_hash", "ask")
_REWARD_JUDGE_ATTRIBUTES: Final = ("name", "judge_reward")


@dataclass(frozen=True)
class RuleBasedJudge:
    """A judge that decides by the reward that the benchmark's own rules gave the run."""

    name: str = "Rule-based"
    inputs: str = "the environment's reward"
    calls: str = "0"
    source: str = "the benchmarks"

    def judge_reward(self, cum_reward: float | None) -> Answer:
        """Return whether the reward is above 0.5. If no reward was recorded, the state is ``error``."""
        if cum_reward is None or math.isnan(cum_reward):
            return Answer("error")
        return Answer("ok", success=cum_reward > released_files.SUCCESS_ABOVE)


@dataclass(frozen=True)
class ConstantJudge:
    """A judge that gives every trajectory the same answer, as a baseline for other judges."""

    name: str
    answer: bool
    inputs: str = "nothing"
    calls: str = "0"
    source: str = "reference"
    prompts_hash: str = ""
    wants: ClassVar[Wants] = Wants()
    models: ClassVar[Mapping[str, str]] = {}

    def ask(self, view: View) -> JudgeSession:
        yield from ()
        return Answer("ok", success=self.answer)


class CustomJudgeError(ValueError):
    """Raised if one of the user's own judges cannot be loaded. The message says what is wrong."""


def is_address(name: str) -> bool:
    """Return whether a name is an address, such as ``path/to/file.py:Name`` or ``package.module:Name``."""
    place, _, attribute = name.rpartition(":")
    return attribute.isidentifier() and (place.endswith(".py") or _MODULE.fullmatch(place) is not None)


def load_judge(address: str) -> AnyJudge:
    """Return the judge at an address (see `is_address`), which may also name a class without arguments.

    This executes the file or module. Raises CustomJudgeError.
    """
    place, _, attribute = address.rpartition(":")
    try:
        module = _module_of_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except CustomJudgeError:
        raise
    except (Exception, SystemExit) as error:  # the file may raise anything
        raise CustomJudgeError(f"{place}: cannot be loaded ({type(error).__name__}: {error})") from error
    if not hasattr(module, attribute):
        raise CustomJudgeError(f"{place}: defines no {attribute}; name a judge that it defines")
    return _checked_judge(getattr(module, attribute), address)


def _checked_judge(judge: Any, address: str) -> AnyJudge:
    """Return the judge, or an instance of a judge class. Raises CustomJudgeError for anything else."""
    if isinstance(judge, type):
        try:
            judge = judge()
        except (Exception, SystemExit) as error:
            raise CustomJudgeError(
                f"{address}: cannot be created without arguments ({error}); add defaults"
            ) from error
    try:
        required = _REWARD_JUDGE_ATTRIBUTES if hasattr(judge, "judge_reward") else _JUDGE_ATTRIBUTES
        absent = [name for name in required if not hasattr(judge, name)]
        problems = [] if absent else _problems_of(judge)
    except (Exception, SystemExit) as fault:  # a property may raise anything
        raise CustomJudgeError(f"{address}: {describe_fault(judge, fault)}") from fault
    if absent:
        raise CustomJudgeError(f"{address}: lacks {', '.join(absent)}; see `Judge` in arb/judges/types.py")
    if problems:
        raise CustomJudgeError(f"{address}: {'; '.join(problems)}")
    return judge


def _problems_of(judge: Any) -> list[str]:
    """Return what is wrong with the attributes of one of the user's own judges, apart from its methods."""
    texts = ("name", "inputs", "calls", "source", "prompts_hash")
    problems = [f"{name} is not a string" for name in texts if not isinstance(getattr(judge, name, ""), str)]
    models, wants = getattr(judge, "models", {}), getattr(judge, "wants", Wants())
    if not isinstance(models, Mapping) or not all(
        isinstance(text, str) and text for pair in models.items() for text in pair
    ):
        problems.append('models is not a dict such as {"judge": "gpt-4o-mini-2024-07-18"}')
    if not isinstance(wants, Wants):
        problems.append("wants is not a Wants, such as Wants(axtrees='last')")
    elif any(each not in AMOUNTS for each in (wants.axtrees, wants.screenshots)):
        problems.append(f"wants: use one of {', '.join(AMOUNTS)} for axtrees and screenshots")
    return problems


def digest_of_files(names: Sequence[str]) -> str | None:
    """Return the SHA-256 hashes of the files that define these judges, separated by spaces, or None.

    The result is None if there are no such files, as for judges of the catalogue. Modules that the files
    import are not covered.
    """
    digests = []
    for name in map(str.strip, names):
        place = name.rpartition(":")[0] if is_address(name) else _module_of_plugin(name)
        if not place.endswith(".py"):
            place = getattr(importlib.util.find_spec(place), "origin", None) or "" if place else ""
        if Path(place).is_file():
            digests.append(hashlib.sha256(Path(place).read_bytes()).hexdigest())
    return " ".join(digests) or None


def _module_of_plugin(name: str) -> str:
    """Return the module that defines a judge of an installed plug-in, or "" for any other name."""
    for entry in entries():
        if entry.is_plugin and _key(name) in map(_key, entry.names):
            return type(entry.judge).__module__
    return ""


def _module_of_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise CustomJudgeError(f"{path}: there is no such file; check the path")
    resolved = path.resolve()
    name = f"judge_of_{resolved.stem}_{hashlib.sha256(str(resolved).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, resolved)
    if spec is None or spec.loader is None:
        raise CustomJudgeError(f"{path}: is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look a class's module up by name
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


class UnknownJudgeError(ValueError):
    """Raised if no judge has this name. The message lists similar names."""


TABLE: Final = Path(__file__).parent / "catalog" / "judges.toml"
"""The file that lists the judges of the catalogue, and the providers that the paper used."""

KINDS: Final[Mapping[str, Callable[..., AnyJudge]]] = {
    "aer": AerJudge,
    "browser-use": BrowserUseJudge,
    "constant": ConstantJudge,
    "tools": ToolJudge,
    "nnetnav": NNetNavJudge,
    "osreward": OSRewardJudge,
    "rubric": RubricJudge,
    "rule-based": RuleBasedJudge,
    "simplified": SimplifiedJudge,
    "steps": StepJudge,
    "webjudge": WebJudge,
}
"""The classes of judges, keyed by their ``kind`` in `TABLE`."""

_PUBLISHED: Final = ("paper/", "reported/")
"""Aliases with these prefixes are row ids of `published/judges.csv`."""


@dataclass(frozen=True, slots=True)
class RegisteredJudge:
    """A judge that can be found by name or alias. ``released`` is its folder in the released data, if any."""

    judge: AnyJudge
    aliases: tuple[str, ...] = ()
    released: str | None = None
    is_plugin: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return (self.judge.name, *self.aliases)

    @property
    def key(self) -> str:
        """The first of the judge's names that needs no quotes in a shell, or else its name in lower case."""
        return next((each for each in self.names if _KEY.fullmatch(each)), self.judge.name.casefold())

    @property
    def is_published(self) -> bool:
        """Whether a paper reports results of this judge."""
        return self.released is not None or any(each.startswith(_PUBLISHED) for each in self.aliases)


@cache
def entries() -> tuple[RegisteredJudge, ...]:
    """Return the judges of the catalogue, followed by those of installed plug-ins.

    A plug-in is an entry point of the group ``arb.judges`` that names a judge, or a judge class without
    arguments. A plug-in that names anything else, or whose name is taken, is left out with a warning.
    """
    found: list[RegisteredJudge] = []
    for point, loaded in load_plugins("arb.judges"):
        if loaded is catalog_judges:
            found += catalog_judges()
            continue
        try:
            judge = _checked_judge(loaded, str(loaded))
        except CustomJudgeError as problem:
            leave_out("arb.judges", point, str(problem))
            continue
        if _key(judge.name) in {_key(name) for entry in found for name in entry.names}:
            leave_out("arb.judges", point, f"there is already a judge {judge.name!r}")
            continue
        found.append(RegisteredJudge(judge, is_plugin=True))
    return tuple(found)


def catalog_judges() -> tuple[RegisteredJudge, ...]:
    """Return the judges in `TABLE`, in the same order."""
    found = []
    for row in _table()["judge"]:
        aliases, released = tuple(row.pop("aliases", ())), row.pop("released", None)
        found.append(RegisteredJudge(KINDS[row.pop("kind")](**row), aliases, released))
    return tuple(found)


def _table() -> dict[str, Any]:
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def default_provider(model: str) -> str | None:
    """Return the provider through which the paper used a model, or None if it did not use the model."""
    return _table()["providers"].get(model)


def _entry_of(judge: AnyJudge) -> RegisteredJudge | None:
    """Return the entry of the judge with the same name, or None."""
    return next((each for each in entries() if each.judge.name == judge.name), None)


_DATE: Final = re.compile(r"-(\d{8}|\d{4}-\d\d-\d\d)")


def is_same_model(asked: str, served: str) -> bool:
    """Return whether the model that answered (``served``) is the one asked for, or a dated version of it.

    The comparison ignores case and owners such as ``anthropic/``, and treats dots as dashes.
    """
    asked, served = (name.rpartition("/")[2].casefold().replace(".", "-") for name in (asked, served))
    return served == asked or (served.startswith(asked) and _DATE.fullmatch(served, len(asked)) is not None)


def full_name(
    judge: AnyJudge,
    models: Mapping[str, ModelSettings],
    served: Mapping[str, Iterable[str]] = MappingProxyType({}),
) -> str:
    """Return the full name of a judge with these models, as used in run folders and exports.

    A published judge keeps its name only with the published models and prompts. Any other judge of the
    catalogue is named by its method, models and prompts: ``simplified-axtree · my-model · own wording``. A
    judge of your own and a judge without models keep their names.

    ``served`` has the models that answered, by role. If models other than the published ones answered, a
    published judge loses its name, and its new name lists the models that answered.
    """
    if isinstance(judge, JudgeWrapper):
        parts = {}
        for prefix, part in judge.parts.items():
            parts[prefix] = full_name(part, _of_part(models, prefix), _of_part(served, prefix))
        return judge.name_with(parts)
    listed = _entry_of(judge)
    if not models or listed is None or listed.is_plugin:
        return judge.name
    asked = {role: model.model for role, model in models.items()}
    names = " + ".join(dict.fromkeys(asked.values()))
    if not isinstance(judge, type(listed.judge)):  # the user's own class with a name from the catalogue
        return f"{judge.name} · {names} · own judge"
    traits = traits_of(judge)
    is_unchanged = (
        traits.is_official and not traits.response_formats and asked == dict(models_of(listed.judge))
    )
    if listed.is_published and is_unchanged:
        others = {
            name for role in asked for name in served.get(role, ()) if not is_same_model(asked[role], name)
        }
        if not others:
            return judge.name
        names += f" (answered by {' and '.join(sorted(others))})"
    form = ", structured output" if traits.response_formats else ""
    return f"{traits.method} · {names} · {'official' if traits.is_official else 'own'} wording{form}"


def _of_part(by_role: Mapping[str, _T], prefix: str) -> dict[str, _T]:
    """Return the values for the roles of one part of a wrapper, with its prefix removed from the roles."""
    return {role[len(prefix) :]: value for role, value in by_role.items() if role.startswith(prefix)}


def key_of(judge: AnyJudge) -> str:
    """Return the name that a judge has in run.json: its `RegisteredJudge.key`, or else its name."""
    if isinstance(judge, JudgeWrapper):
        return judge.name_with({prefix: key_of(part) for prefix, part in judge.parts.items()})
    listed = _entry_of(judge)
    if listed is not None and isinstance(judge, type(listed.judge)):
        return listed.key
    return judge.name


def find_judge(
    name: str,
    *,
    prompts: Literal["own", "official"] = "own",
    compat: bool = False,
    settings: Settings | None = None,
    checkout: Path | None = None,
) -> AnyJudge:
    """Return the judge with this name, alias or address (see `is_address`).

    Case, spaces and underscores in names are ignored. With ``prompts="official"`` the judge uses its authors'
    prompts, from the package agent-reward-bench (found through ``settings``) or, for WebJudge, OSReward and
    browser-use, from a ``checkout`` of their authors' repository. With ``compat`` NNetNav pairs state changes
    and actions as the released code does. Raises UnknownJudgeError, CustomJudgeError or OfficialPromptsError.
    """
    judge = load_judge(name) if is_address(name) else _named(name)
    if compat:
        if not isinstance(judge, NNetNavJudge):
            raise UnknownJudgeError(f"--compat works only with NNetNav, not with {judge.name}; leave it out")
        judge = replace(judge, is_compat=True)
    if prompts == "official":
        judge = official.official_judge(judge, settings, checkout)
    return judge


def _named(name: str) -> AnyJudge:
    by_key = {_key(spelled): entry.judge for entry in entries() for spelled in entry.names}
    if (found := by_key.get(_key(name))) is not None:
        return found
    near = difflib.get_close_matches(_key(name), by_key, n=3, cutoff=0.5)
    titles = dict.fromkeys(repr(by_key[key].name) for key in near)
    hint = f"Did you mean {' or '.join(titles)}? " if titles else ""
    raise UnknownJudgeError(
        f"there is no judge {name!r}. {hint}`arb judges list` shows all judges; name a judge of "
        "your own as path/to/file.py:Name"
    )


def _key(name: str) -> str:
    return "-".join(name.casefold().replace("_", " ").replace("-", " ").split())


def list_judges(as_json: JsonOption = False) -> None:
    """List all judges with what they see, their calls per trajectory, default model and source.

    In the column "calls", n is the number of steps or screenshots of a trajectory.
    """
    if as_json:
        print_json([_facts(entry) for entry in entries()])
        return
    table = text_table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("judge", "sees", "calls", "default model", "source"):
        table.add_column(heading, overflow="fold", no_wrap=heading != "sees")
    for judge in (entry.judge for entry in entries()):
        models = ", ".join(dict.fromkeys(models_of(judge).values())) or "none"
        table.add_row(judge.name, judge.inputs, judge.calls, models, judge.source)
    plain_console().print(table)
    typer.echo("Other names:")
    for entry in entries():
        if entry.aliases:
            typer.echo(f"  {entry.judge.name}: {', '.join(entry.aliases)}")


def _facts(entry: RegisteredJudge) -> dict[str, Any]:
    judge = entry.judge
    return {
        "name": judge.name,
        "aliases": list(entry.aliases),
        "inputs": judge.inputs,
        "calls": judge.calls,
        "models": dict(models_of(judge)),
        "source": judge.source,
    }
