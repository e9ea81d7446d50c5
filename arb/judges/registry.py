"""Every judge by name: the paper's, other names, those that ask no model; what ``judges list`` prints.

A judge of your own is named by where it is: ``path/to/file.py:Name`` or ``package.module:Name``.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeVar

import typer

from arb.core.cli import JsonOption, plain_console, print_json
from arb.core.console import text_table
from arb.judges.catalog.aer import AerJudge
from arb.judges.catalog.nnetnav import NNetNavJudge
from arb.judges.catalog.simplified import SimplifiedJudge
from arb.judges.catalog.webjudge import WebJudge
from arb.judges.traits import traits_of
from arb.judges.types import Answer, AnyJudge, JudgeSession, ModelSettings, View, Wants, models_of
from arb.judges.wrappers import JudgeWrapper

if TYPE_CHECKING:
    from arb.core.settings import Settings

_T = TypeVar("_T")
_KEY: Final = re.compile(r"[a-z0-9.-]+")
_MODULE: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_JUDGE_ATTRIBUTES: Final = ("name", "inputs", "calls", "source", "wants", "models", "prompts_hash", "ask")
_REWARD_JUDGE_ATTRIBUTES: Final = ("name", "judge_reward")

GPT_4O: Final = "gpt-4o-2024-11-20"
GPT_4O_MINI: Final = "gpt-4o-mini-2024-07-18"
CLAUDE: Final = "anthropic/claude-3.7-sonnet"
LLAMA: Final = "meta-llama/Llama-3.3-70B-Instruct"
QWEN: Final = "Qwen/Qwen2.5-VL-72B-Instruct"
O4_MINI: Final = "o4-mini-2025-04-16"
WEBJUDGE_7B: Final = "osunlp/WebJudge-7B"

_PROVIDERS: Final = MappingProxyType(
    {
        GPT_4O: "openai",
        GPT_4O_MINI: "openai",
        O4_MINI: "openai",
        CLAUDE: "openrouter",
        LLAMA: "vllm",
        QWEN: "vllm",
        WEBJUDGE_7B: "vllm",
    }
)

_KINDS: Final = (
    ("axtree", True, False),
    ("screenshot", False, True),
    ("both", True, True),
    ("neither", False, False),
)
"""What the simplified judges see: the tree, the screenshot."""

_TABLE_2: Final = ("gpt-4o-mini", "gpt-4o-mini-noscreen-noaxtree")
"""Released folders of the judges that are in the paper's ablation alone."""

_PUBLISHED: Final = ("paper/", "reported/")
"""How the ids of the rows in `published/judges.csv` begin that have a judge's name."""

_REASONING_TOKENS: Final = 8192
"""What a reasoning model may write for each call: its thoughts count, and 1,024 tokens end within them."""


RELEASED_FOLDERS: Final = (
    "functional",
    "aer",
    "aerv",
    "nnetnav",
    *(f"claude-3.7-sonnet-{form}" for form in ("noscreen", "noaxtree")),
    *(f"gpt-4o-{form}" for form in ("noscreen", "noaxtree")),
    "gpt-4o-mini",
    *(f"gpt-4o-mini-{form}" for form in ("noaxtree", "noscreen", "noscreen-noaxtree")),
    *(f"qwen-2.5-vl-{form}" for form in ("noaxtree", "noscreen")),
    "llama-3.3-70b-noscreen",
)
"""The judges' folders in the released data."""


@dataclass(frozen=True)
class RuleBasedJudge:
    """The benchmarks' own rules: follows the environment's reward, and is the only judge that gets it."""

    name: str = "Rule-based"
    inputs: str = "the environment's reward"
    calls: str = "0"
    source: str = "the benchmarks"

    def judge_reward(self, cum_reward: float | None) -> Answer:
        """Success above 0.5; the state ``error`` where no reward was recorded."""
        from dataset_script.sources.released_files import SUCCESS_ABOVE

        if cum_reward is None or math.isnan(cum_reward):
            return Answer("error")
        return Answer("ok", success=cum_reward > SUCCESS_ABOVE)


@dataclass(frozen=True)
class ConstantJudge:
    """Gives the same answer to every trajectory: the floor that every other judge has to leave behind.

    Its precision on success is the share of successful runs (26.7 % on test): what a coin with "yes" on both
    sides reaches.
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
    """A judge that cannot be loaded; the message says what is wrong with the file, or with the judge."""


def is_address(name: str) -> bool:
    """Whether a name says where a judge is: a file or a module, a colon, and an attribute."""
    place, _, attribute = name.rpartition(":")
    return attribute.isidentifier() and (place.endswith(".py") or _MODULE.fullmatch(place) is not None)


def load_judge(address: str) -> AnyJudge:
    """The judge at an address: an instance, or a class that is made without arguments.

    Runs the file. Raises CustomJudgeError.
    """
    place, _, attribute = address.rpartition(":")
    try:
        module = _module_of_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except CustomJudgeError:
        raise
    except Exception as error:  # whatever the file does when it is run
        raise CustomJudgeError(f"{place}: cannot be loaded ({type(error).__name__}: {error})") from error
    if not hasattr(module, attribute):
        raise CustomJudgeError(f"{place}: has no {attribute}")
    judge = getattr(module, attribute)
    if isinstance(judge, type):
        try:
            judge = judge()
        except Exception as error:
            raise CustomJudgeError(f"{address}: cannot be made without arguments ({error})") from error
    required = _REWARD_JUDGE_ATTRIBUTES if hasattr(judge, "judge_reward") else _JUDGE_ATTRIBUTES
    if absent := [name for name in required if not hasattr(judge, name)]:
        raise CustomJudgeError(f"{address}: a judge needs {', '.join(absent)}; see arb/judges/types.py")
    return judge


def digest_of_files(names: Sequence[str]) -> str | None:
    """SHA-256 of the file that each address among judges' names is in; None without any, or where it is none.

    What the file imports is not in it.
    """
    digests = []
    for place in (name.strip().rpartition(":")[0] for name in names if is_address(name.strip())):
        if not place.endswith(".py"):
            place = getattr(importlib.util.find_spec(place), "origin", None) or ""
        if Path(place).is_file():
            digests.append(hashlib.sha256(Path(place).read_bytes()).hexdigest())
    return " ".join(digests) or None


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
    """A name that is not a judge's; the message says which ones are near."""


@dataclass(frozen=True, slots=True)
class RegisteredJudge:
    """A judge of the table with its other names."""

    judge: AnyJudge
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (self.judge.name, *self.aliases)

    @property
    def key(self) -> str:
        """The first of the names that needs no quotes, in small letters: ``gpt-4o-mini-noscreen``."""
        return next((each for each in self.names if _KEY.fullmatch(each)), self.judge.name.casefold())


def entries() -> tuple[RegisteredJudge, ...]:
    """The whole table: the paper's judges in the order of its Table 7, later ones, families, references."""
    return tuple(_entries())


def default_provider(model: str) -> str | None:
    """Where the model of a judge of the table was asked for the paper; None for any other model."""
    return _PROVIDERS.get(model)


_DATE: Final = re.compile(r"-(\d{8}|\d{4}-\d\d-\d\d)")


def is_same_model(asked: str, served: str) -> bool:
    """Return whether a reply's model is the one that was asked.

    Owners (``anthropic/``), case and dots do not count, and the name of a family may be answered by a dated
    version of it.
    """
    asked, served = (name.rpartition("/")[2].casefold().replace(".", "-") for name in (asked, served))
    return served == asked or (served.startswith(asked) and _DATE.fullmatch(served, len(asked)) is not None)


def full_name(
    judge: AnyJudge,
    models: Mapping[str, ModelSettings],
    served: Mapping[str, Iterable[str]] = MappingProxyType({}),
) -> str:
    """Return what a judge is called when these models are asked: in a run, its lines, and its export.

    A judge of the paper, and WebJudge, has its name only with its own models and the official wording. Any
    other judge of the catalogue is named by what runs, such as ``simplified-axtree · my-model · own
    wording``. Samples, a cascade and the like are added to the names of their parts. A judge of your own,
    and one without a model, keeps its name. ``served`` are the models that answered, by role: if they are not
    those that were asked, the name says so and is not the paper's.
    """
    if isinstance(judge, JudgeWrapper):
        names = {}
        for prefix, part in judge.parts.items():
            names[prefix] = full_name(part, _of_part(models, prefix), _of_part(served, prefix))
        return judge.name_with(names)
    listed = next((each for each in entries() if each.judge.name == judge.name), None)
    if not models or listed is None:
        return judge.name
    asked = {role: model.model for role, model in models.items()}
    names = " + ".join(dict.fromkeys(asked.values()))
    if not isinstance(judge, type(listed.judge)):  # your own class with a name of the catalogue
        return f"{judge.name} · {names} · own judge"
    traits = traits_of(judge)
    is_published = any(each.startswith(_PUBLISHED) or each in _TABLE_2 for each in listed.aliases)
    is_unchanged = traits.is_official and not traits.is_structured and asked == dict(listed.judge.models)
    if is_published and is_unchanged:
        if not (others := _other_models(asked, served)):
            return judge.name
        names += f" (answered by {' and '.join(others)})"
    form = ", structured output" if traits.is_structured else ""
    return f"{traits.method} · {names} · {'official' if traits.is_official else 'own'} wording{form}"


def _of_part(by_role: Mapping[str, _T], prefix: str) -> dict[str, _T]:
    """Return the roles of one part of a wrapper, under the names that the part gives them."""
    return {role[len(prefix) :]: value for role, value in by_role.items() if role.startswith(prefix)}


def _other_models(asked: Mapping[str, str], served: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the models that answered although another one was asked, sorted."""
    return sorted(
        {name for role in asked for name in served.get(role, ()) if not is_same_model(asked[role], name)}
    )


def key_of(judge: AnyJudge) -> str:
    """Return the name of a judge in configurations: its key in the catalogue, or its own name."""
    if isinstance(judge, JudgeWrapper):
        return judge.name_with({prefix: key_of(part) for prefix, part in judge.parts.items()})
    listed = next((each for each in entries() if each.judge.name == judge.name), None)
    is_listed = listed is not None and isinstance(judge, type(listed.judge))
    return listed.key if is_listed else judge.name


def find_judge(
    name: str,
    *,
    prompts: Literal["own", "official"] = "own",
    compat: bool = False,
    settings: Settings | None = None,
    checkout: Path | None = None,
) -> AnyJudge:
    """The judge of a name, an alias, or an address: ``path/to/file.py:Name``, ``package.module:Name``.

    Names are read without regard to case, spaces and underscores. ``prompts="official"`` gives the judge in
    the words of the package agent-reward-bench, which ``settings`` say where to find, and WebJudge in those
    of a ``checkout`` of Online-Mind2Web; ``compat`` NNetNav that pairs changes and actions as the released
    code did. Raises UnknownJudgeError, CustomJudgeError, or OfficialPromptsError (all ValueError).
    """
    judge = load_judge(name) if is_address(name) else _named(name)
    if compat:
        if not isinstance(judge, NNetNavJudge):
            raise UnknownJudgeError(f"{judge.name}: --compat is for NNetNav alone; leave it out")
        judge = replace(judge, is_compat=True)
    if prompts == "official":
        from arb.judges.catalog.official import official_judge

        judge = official_judge(judge, settings, checkout)
    return judge


def _named(name: str) -> AnyJudge:
    by_key = {_key(spelled): entry.judge for entry in entries() for spelled in entry.names}
    if (found := by_key.get(_key(name))) is not None:
        return found
    near = difflib.get_close_matches(_key(name), by_key, n=3, cutoff=0.5)
    titles = dict.fromkeys(repr(by_key[key].name) for key in near)
    hint = f"did you mean {' or '.join(titles)}? " if titles else ""
    raise UnknownJudgeError(
        f"there is no judge {name!r}; {hint}`python -m arb judges list` names all; "
        "name your own judge as path/to/file.py:Name"
    )


def _key(name: str) -> str:
    return "-".join(name.casefold().replace("_", " ").replace("-", " ").split())


def _entries() -> Iterator[RegisteredJudge]:
    yield RegisteredJudge(RuleBasedJudge(), ("Rule-based*", "Functional", "paper/rule-based"))
    yield RegisteredJudge(AerJudge("AER-C", GPT_4O, captioner=GPT_4O), ("aer", "aerc", "paper/aer-c"))
    yield RegisteredJudge(AerJudge("AER-V", GPT_4O), ("aerv", "paper/aer-v"))
    yield RegisteredJudge(NNetNavJudge("NNetNav", LLAMA, describer=LLAMA), ("paper/nnetnav",))
    yield from _of_the_paper("Claude 3.7 S.", "claude-3.7-sonnet", "claude-3.7-sonnet", CLAUDE)
    yield from _of_the_paper("GPT-4o", "gpt-4o", "gpt-4o", GPT_4O)
    yield from _of_the_paper("GPT-4o Mini", "gpt-4o-mini", "gpt-4o-mini", GPT_4O_MINI)
    yield from _of_table_2("GPT-4o Mini", "gpt-4o-mini", GPT_4O_MINI)
    yield from _of_the_paper("Llama 3.3", "llama-3.3-70b", "llama-3.3", LLAMA, is_text_only=True)
    yield from _of_the_paper("Qwen2.5-VL", "qwen-2.5-vl", "qwen2.5-vl", QWEN)
    yield RegisteredJudge(
        WebJudge("WebJudge (o4-mini)", O4_MINI, max_output_tokens=_REASONING_TOKENS),
        ("WebJudge(o4-mini)", "webjudge", "reported/webjudge-o4-mini"),
    )
    yield RegisteredJudge(WebJudge("WebJudge-7B", WEBJUDGE_7B), ("reported/webjudge-7b",))
    yield from _families()
    yield RegisteredJudge(
        ConstantJudge("always-successful", True), ("Always yes", "reference/always-successful")
    )
    yield RegisteredJudge(
        ConstantJudge("never-successful", False), ("Always no", "reference/never-successful")
    )


def _of_the_paper(
    title: str, released: str, row: str, model: str, *, is_text_only: bool = False
) -> Iterator[RegisteredJudge]:
    """The simplified judge with a model, (A) with the tree and (S) with the screenshot.

    Its other names: the released folder, the released runner, and the row of `published/judges.csv`.
    """
    long = title.replace("Claude 3.7 S.", "Claude 3.7 Sonnet")
    with_tree = SimplifiedJudge(f"{title} (A)", model, has_axtree=True, shows_goal_images=not is_text_only)
    spelled_out = [f"{long} (A)"] if long != title else []
    others = (f"{released}-noscreen", f"{released}-axtree", f"paper/{row}-tree")
    yield RegisteredJudge(with_tree, (*spelled_out, *others))
    if not is_text_only:
        with_picture = SimplifiedJudge(f"{title} (S)", model, has_screenshot=True)
        spelled_out = [f"{long} (S)"] if long != title else []
        others = (f"{released}-noaxtree", f"{released}-screen", f"paper/{row}-screenshot")
        yield RegisteredJudge(with_picture, (*spelled_out, *others))


def _of_table_2(title: str, released: str, model: str) -> Iterator[RegisteredJudge]:
    """The two other rows of the paper's ablation; the release calls the first one by the bare model."""
    both = SimplifiedJudge(f"{title} (A+S)", model, has_axtree=True, has_screenshot=True)
    yield RegisteredJudge(both, (released, f"{released}-both"))
    neither = SimplifiedJudge(f"{title} (neither)", model)
    yield RegisteredJudge(neither, (f"{released}-noscreen-noaxtree", f"{released}-none"))


def _families() -> Iterator[RegisteredJudge]:
    """The simplified judge for any model, named by what it sees; each also with success asked last."""
    for kind, has_axtree, has_screenshot in _KINDS:
        judge = SimplifiedJudge(f"simplified-{kind}", GPT_4O, has_axtree, has_screenshot)
        yield RegisteredJudge(judge)
        yield RegisteredJudge(replace(judge, name=f"{judge.name}-inverted", is_inverted=True))


def released_folder(name: str) -> str | None:
    """The judge's folder in the released data; None for a judge that is not among them."""
    for entry in entries():
        if entry.judge.name == name:
            spelled = (each.casefold() for each in entry.names)
            return next((each for each in spelled if each in RELEASED_FOLDERS), None)
    return None


def list_judges(as_json: JsonOption = False) -> None:
    """List the judges: name, what each sees, calls for a trajectory, default model, source.

    Where calls are n, n is the number of the trajectory's steps, or of its screenshots.
    """
    rows = [_row(entry) for entry in entries()]
    if as_json:
        print_json(rows)
        return
    _print_table(rows)
    typer.echo("Other names:")
    for row in rows:
        if row["aliases"]:
            typer.echo(f"  {row['name']}: {', '.join(row['aliases'])}")


def _row(entry: RegisteredJudge) -> dict[str, Any]:
    judge = entry.judge
    return {
        "name": judge.name,
        "aliases": list(entry.aliases),
        "inputs": judge.inputs,
        "calls": judge.calls,
        "models": dict(models_of(judge)),
        "source": judge.source,
    }


def _print_table(rows: list[dict[str, Any]]) -> None:
    from rich import box

    table = text_table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("judge", "sees", "calls", "default model", "source"):
        table.add_column(heading, overflow="fold", no_wrap=heading != "sees")
    for row in rows:
        models = ", ".join(dict.fromkeys(row["models"].values())) or "none"
        table.add_row(row["name"], row["inputs"], row["calls"], models, row["source"])
    plain_console().print(table)
