"""Find judges by name, and list them (``judges list``).

The name of a judge of your own is its address: ``path/to/file.py:Name`` or ``package.module:Name``.
"""

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
from arb.judges.catalog.nnetnav import NNetNavJudge
from arb.judges.catalog.simplified import SimplifiedJudge
from arb.judges.catalog.webjudge import WebJudge
from arb.judges.types import Answer, AnyJudge, JudgeSession, ModelSettings, View, Wants, models_of, traits_of
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
    """A judge that follows the benchmarks' own rules: the environment's reward, hidden from other judges."""

    name: str = "Rule-based"
    inputs: str = "the environment's reward"
    calls: str = "0"
    source: str = "the benchmarks"

    def judge_reward(self, cum_reward: float | None) -> Answer:
        """Return a success if the reward is above 0.5, or the state ``error`` if no reward was recorded."""
        if cum_reward is None or math.isnan(cum_reward):
            return Answer("error")
        return Answer("ok", success=cum_reward > released_files.SUCCESS_ABOVE)


@dataclass(frozen=True)
class ConstantJudge:
    """A judge that gives every trajectory the same answer, as a baseline for all other judges.

    The precision of the judge that always says yes is the share of successful runs (26.7 % on test).
    """

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
    """Raised for a custom judge that cannot be loaded. The message says what is wrong with it or its file."""


def is_address(name: str) -> bool:
    """Return whether a name is the address of a judge: a file or a module, a colon, and an attribute."""
    place, _, attribute = name.rpartition(":")
    return attribute.isidentifier() and (place.endswith(".py") or _MODULE.fullmatch(place) is not None)


def load_judge(address: str) -> AnyJudge:
    """Run the file or import the module of an address, and return the judge that the address names.

    The address may name a judge, or a class that needs no arguments. Raises CustomJudgeError.
    """
    place, _, attribute = address.rpartition(":")
    try:
        module = _module_of_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except CustomJudgeError:
        raise
    except Exception as error:  # the file may raise anything
        raise CustomJudgeError(f"{place}: cannot be loaded ({type(error).__name__}: {error})") from error
    if not hasattr(module, attribute):
        raise CustomJudgeError(f"{place}: has no {attribute}")
    return _checked_judge(getattr(module, attribute), address)


def _checked_judge(judge: Any, address: str) -> AnyJudge:
    """Return the judge, or an instance if it is a class. Raises CustomJudgeError if it is not a judge."""
    if isinstance(judge, type):
        try:
            judge = judge()
        except Exception as error:
            raise CustomJudgeError(f"{address}: cannot be created without arguments ({error})") from error
    required = _REWARD_JUDGE_ATTRIBUTES if hasattr(judge, "judge_reward") else _JUDGE_ATTRIBUTES
    if absent := [name for name in required if not hasattr(judge, name)]:
        raise CustomJudgeError(f"{address}: a judge needs {', '.join(absent)}; see arb/judges/types.py")
    return judge


def digest_of_files(names: Sequence[str]) -> str | None:
    """Return the space-separated SHA-256 hashes of the files that define the judges; None if there are none.

    Only judges with an address and judges from installed packages count, not those of the catalogue. Modules
    that a file imports are not covered.
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
    """Return the module of a judge from an installed package, or an empty string for any other name."""
    for entry in entries():
        if entry.is_plugin and _key(name) in map(_key, entry.names):
            return type(entry.judge).__module__
    return ""


def _module_of_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise CustomJudgeError(f"{path}: there is no such file")
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
    """Raised for an unknown name of a judge; the message lists similar names."""


TABLE: Final = Path(__file__).parent / "catalog" / "judges.toml"
"""The table of the catalogue's judges with their aliases, and of the providers that the paper used."""

KINDS: Final[Mapping[str, Callable[..., AnyJudge]]] = {
    "aer": AerJudge,
    "constant": ConstantJudge,
    "nnetnav": NNetNavJudge,
    "rule-based": RuleBasedJudge,
    "simplified": SimplifiedJudge,
    "webjudge": WebJudge,
}
"""The classes of judges by their names in the table."""

_PUBLISHED: Final = ("paper/", "reported/")
"""The prefixes of aliases that are row ids of `published/judges.csv`."""


@dataclass(frozen=True, slots=True)
class RegisteredJudge:
    """A judge with a name, its aliases, and its folder in the released data if it has one."""

    judge: AnyJudge
    aliases: tuple[str, ...] = ()
    released: str | None = None
    is_plugin: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return (self.judge.name, *self.aliases)

    @property
    def key(self) -> str:
        """The first name that needs no quotes in a shell, or else the judge's name in lower case."""
        return next((each for each in self.names if _KEY.fullmatch(each)), self.judge.name.casefold())

    @property
    def is_published(self) -> bool:
        """Whether a paper reports results of a judge with this name and these models."""
        return self.released is not None or any(each.startswith(_PUBLISHED) for each in self.aliases)


@cache
def entries() -> tuple[RegisteredJudge, ...]:
    """Return every judge with a name: those of the catalogue, then those of installed packages.

    An entry point of the group ``arb.judges`` names a judge, or a judge class that needs no arguments. A
    plug-in that is not a judge, or whose name is already taken, is left out with a warning.
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
    """Return the table's judges: those of the paper in Table 7's order, later ones, families, references."""
    found = []
    for row in _table()["judge"]:
        aliases, released = tuple(row.pop("aliases", ())), row.pop("released", None)
        found.append(RegisteredJudge(KINDS[row.pop("kind")](**row), aliases, released))
    return tuple(found)


def _table() -> dict[str, Any]:
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def default_provider(model: str) -> str | None:
    """Return the provider that the paper used for a model, or None if the paper did not use the model."""
    return _table()["providers"].get(model)


def _entry_of(judge: AnyJudge) -> RegisteredJudge | None:
    """Return the registered judge with the same name, or None."""
    return next((each for each in entries() if each.judge.name == judge.name), None)


_DATE: Final = re.compile(r"-(\d{8}|\d{4}-\d\d-\d\d)")


def is_same_model(asked: str, served: str) -> bool:
    """Return whether the model that served a reply is the requested model, or a dated version of it.

    The comparison ignores owners (``anthropic/``) and case, and treats dots as dashes.
    """
    asked, served = (name.rpartition("/")[2].casefold().replace(".", "-") for name in (asked, served))
    return served == asked or (served.startswith(asked) and _DATE.fullmatch(served, len(asked)) is not None)


def full_name(
    judge: AnyJudge,
    models: Mapping[str, ModelSettings],
    served: Mapping[str, Iterable[str]] = MappingProxyType({}),
) -> str:
    """Return the name of a judge with these models, as used in run folders and exports.

    A judge of the paper, and WebJudge, keeps its name only with its own models and the official wording. Any
    other judge of the catalogue is named by its method, models and wording, such as ``simplified-axtree ·
    my-model · own wording``. Wrappers build their names from the names of their parts. A judge of your own,
    and one without a model, keeps its name. If other models than the requested ones answered (``served``, by
    role), a judge of the paper loses its name, and the new name lists the models that answered.
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
    if not isinstance(judge, type(listed.judge)):  # a class of your own under a name of the catalogue
        return f"{judge.name} · {names} · own judge"
    traits = traits_of(judge)
    is_unchanged = traits.is_official and not traits.is_structured and asked == dict(models_of(listed.judge))
    if listed.is_published and is_unchanged:
        if not (others := _other_models(asked, served)):
            return judge.name
        names += f" (answered by {' and '.join(others)})"
    form = ", structured output" if traits.is_structured else ""
    return f"{traits.method} · {names} · {'official' if traits.is_official else 'own'} wording{form}"


def _of_part(by_role: Mapping[str, _T], prefix: str) -> dict[str, _T]:
    """Return the values of one part of a wrapper by role, without the part's prefix."""
    return {role[len(prefix) :]: value for role, value in by_role.items() if role.startswith(prefix)}


def _other_models(asked: Mapping[str, str], served: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the sorted names of the models that answered in place of a requested model."""
    return sorted(
        {name for role in asked for name in served.get(role, ()) if not is_same_model(asked[role], name)}
    )


def key_of(judge: AnyJudge) -> str:
    """Return the name of a judge in configurations: its key in the catalogue, or its own name."""
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
    """Return the judge with a name, an alias, or an address (see `is_address`).

    Names are compared without regard to case, spaces and underscores. With ``prompts="official"`` the judge
    uses its authors' prompts: those of the package agent-reward-bench, found through ``settings``, or for
    WebJudge those of a ``checkout`` of Online-Mind2Web. With ``compat`` NNetNav pairs changes and actions as
    the released code does. Raises UnknownJudgeError, CustomJudgeError, or OfficialPromptsError.
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
        f"there is no judge {name!r}. {hint}`arb judges list` shows all; name your own judge as "
        "path/to/file.py:Name"
    )


def _key(name: str) -> str:
    return "-".join(name.casefold().replace("_", " ").replace("-", " ").split())


def released_folder(name: str) -> str | None:
    """Return the folder of a judge in the released data, or None if it has none."""
    return next((each.released for each in entries() if each.judge.name == name), None)


def list_judges(as_json: JsonOption = False) -> None:
    """List the judges of the catalogue.

    The columns are the judge's inputs, calls per trajectory, default models and source. In the column of
    calls, n is the number of steps or of screenshots of a trajectory.
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
