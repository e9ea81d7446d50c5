"""The options shared by the commands `run`, `plan`, `ablate`, `probe` and `certify`."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, TypeVar, get_type_hints

from typer import Argument, Option

from arb.core.cli import (
    AgentFromOption,
    SuiteOption,
    flags,
    stop,
)
from arb.core.lazy import lazy_imports
from arb.core.options import described_type
from arb.judges.endpoints.providers import PROVIDERS
from arb.judges.types import OptionsError

with lazy_imports():
    from arb.core import suite as suites
    from arb.judges import registry
    from arb.judges.engine import prompt_store, storage
    from arb.judges.run import folder as run_folder
    from dataset_script import commands as dataset_commands
    from dataset_script import new_suite
    from dataset_script.sources import problems as sources

_FILE: Final = Path(__file__).with_suffix(".toml")
_NO_RUNS = (
    "choose the runs to judge: --split dev or --split test for those of a suite, or --source FOLDER without "
    "--split for your own"
)


def complete_judge(incomplete: str) -> list[str]:
    """Return shell completions of a judge's name in lower case. Names that need quotes are left out."""
    names = (name.casefold() for entry in registry.entries() for name in entry.names)
    return [name for name in names if re.fullmatch(r"[\w.-]+", name) and name.startswith(incomplete)]


def complete_provider(incomplete: str) -> list[str]:
    """Return shell completions of a provider's name."""
    return [name for name in PROVIDERS if name.startswith(incomplete)]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a run as typed by the user; options.toml describes them.

    `arb.judges.run.config` turns them into a `RunConfig`.
    """

    judge: Annotated[
        str | None,
        Argument(help="Run this judge (see `list`); omit it with --cascade.", autocompletion=complete_judge),
    ] = None

    split: Literal["dev", "test"] | None = None
    suite: SuiteOption = None
    source: Path | None = None
    agent_from: AgentFromOption = None
    typed_source: Path | None = None
    """Not an option: the user's ``--source`` if ``source`` is a dataset that was built from it."""
    benchmark: list[str] | None = None
    agent: list[str] | None = None
    subset: list[str] | None = None
    ids: Path | None = None
    shard: str | None = None
    limit: int | None = None
    skip_incomplete: bool = False

    model: str | None = None
    model_of: list[str] | None = None
    provider: Annotated[
        str | None,
        Option(
            help=f"Use this provider: {', '.join(PROVIDERS)}.",
            autocompletion=complete_provider,
            rich_help_panel="Model and endpoint",
        ),
    ] = None
    base_url: str | None = None
    key_variable: str | None = None
    header: list[str] | None = None

    temperature: float | None = None
    seed: int | None = None
    max_output_tokens: int | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    logprobs: bool = False
    structured_output: bool = False
    prompt_cache: Literal["system", "prompt"] | None = None
    extra: list[str] | None = None
    allow_dropped_params: bool = False

    prompts: Literal["own", "official"] = "own"
    prompts_from: Path | None = None
    compat: bool = False
    max_image_side: int | None = None
    image_format: Literal["png", "jpeg", "webp"] | None = None
    image_detail: Literal["auto", "low", "high"] | None = None

    samples: int = 1
    vote: Literal["all", "majority", "any"] | None = None
    cascade: str | None = None
    cascade_band: str | None = None
    cascade_trusts_yes: bool = False
    threshold: Path | None = None

    max_usd: float | None = None
    price: list[str] | None = None
    prices: Path | None = None
    max_in_flight: int = 64
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    rate_limit_timeout: float | None = None
    timeout: float | None = None

    cache: Path | None = None
    refresh: bool = False
    cache_days: float | None = None
    answers: str | None = None

    @property
    def split_name(self) -> str:
        """The split to judge. Raises OptionsError if the user chose neither a split nor a source."""
        if self.split is None:
            raise OptionsError(_NO_RUNS)
        return self.split


Options = TypeVar("Options", bound=RunOptions)


def described(command: Callable) -> Callable:
    """Return a command with the options that options.toml describes.

    Parameters with an annotation of their own are left as they are. If the command raises one of
    `user_errors`, only its message is printed.
    """
    return _with_options(command, {}, {}, command)


def with_run_options(
    *, without: Sequence[str] = (), defaults: Mapping[str, Any] = MappingProxyType({})
) -> Callable[[Callable], Callable]:
    """Return a decorator like `described` for a command whose parameter ``options`` has the options of a run.

    That parameter must have the type RunOptions or a subclass; each of its fields becomes an option.
    ``without`` names fields to leave out, and ``defaults`` replaces default values.
    """

    def decorate(command: Callable) -> Callable:
        kind = get_type_hints(command)["options"]
        left_out = {"typed_source", *without}
        shared = {each.name: each.default for each in fields(kind) if each.name not in left_out}

        def run(**values: Any) -> Any:
            chosen = {name: values.pop(name) for name in shared}
            return command(with_built_source(kind(**chosen)), **values)

        return _with_options(command, {**shared, **defaults}, get_type_hints(kind, include_extras=True), run)

    return decorate


def _with_options(
    command: Callable, shared: Mapping[str, Any], hints: dict[str, Any], run: Callable
) -> Callable:
    """Wrap ``run`` in a function with the options of ``command`` and of ``shared`` (defaults by name)."""

    @functools.wraps(command)
    def called(**values: Any) -> Any:
        try:
            return run(**values)
        except user_errors() as problem:
            stop(str(problem))

    hints = hints | get_type_hints(command, include_extras=True)
    own = {each.name: each.default for each in inspect.signature(command).parameters.values()}
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=described_type(_FILE, command.__name__, name, hints[name]),
        )
        for name, default in {**shared, **own}.items()
        if name != "options"
    ]
    # inspect reads this attribute, which the type of functools.wraps does not have.
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    del called.__wrapped__  # inspect would read the parameters of the command instead
    return called


def with_built_source(options: Options) -> Options:
    """Build a suite and a dataset from ``--source``, and return the options with their names filled in.

    If there is a ``--split``, return the options unchanged. Raises OptionsError if there is neither a split
    nor a source. If the runs cannot be read, `read_source` ends the command.
    """
    if options.split is not None:
        if options.agent_from:
            raise OptionsError("--agent-from needs --source without --split; remove one of them")
        return options
    if options.source is None:
        raise OptionsError(_NO_RUNS)
    if options.suite is not None:
        raise OptionsError(
            "--source and --suite cannot be used together without --split. Leave out --suite to judge all "
            "runs of the folder, or add --split to judge only those that belong to the suite"
        )
    built = dataset_commands.read_source(options.source, options.agent_from)
    return replace(
        options,
        suite=str(built.suite_folder),
        source=built.folder,
        split=new_suite.SOURCE_SPLIT,
        typed_source=options.source,
    )


def suite_of_run(name: str, typed: str | None) -> suites.Suite:
    """Return the suite of a run. If it is the user's own, ``typed`` (``--suite``) names its folder.

    Raises OptionsError if ``--suite`` is needed but missing, or if it names another suite.
    """
    try:
        suite = suites.load_suite(typed or name)
    except suites.SuiteError as problem:
        advice = "" if typed else f"; if {name} is a suite of your own, name its folder with --suite"
        raise OptionsError(f"{problem}{advice}") from None
    if suite.name != name:
        raise OptionsError(f"--suite {typed}: the run is on the suite {name}; name that suite")
    return suite


def typed(options: RunOptions, **other: Any) -> list[str]:
    """Return command-line arguments that repeat these options, to suggest a next command to the user.

    Options with their default value are left out. ``other`` replaces or adds options. Since the values of
    headers may be secrets, they are replaced by ``VALUE``.
    """
    values: dict[str, Any] = {each.name: getattr(options, each.name) for each in fields(RunOptions)}
    values["header"] = [f"{text.partition('=')[0]}=VALUE" for text in options.header or ()] or None
    if values.pop("typed_source") is not None:
        values |= {"source": options.typed_source, "suite": None, "split": None}
    defaults = {each.name: each.default for each in fields(RunOptions)}
    chosen = {name: value for name, value in (values | other).items() if value != defaults.get(name)}
    judge = chosen.pop("judge", None)
    return [*([] if judge is None else [judge]), *flags(**chosen)]


def user_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions whose messages are shown to the user without a traceback."""
    of_files = (
        run_folder.RunFolderError,
        sources.SourceError,
        storage.StorageError,
        prompt_store.PromptStoreError,
    )
    return OptionsError, suites.SuiteError, *of_files
