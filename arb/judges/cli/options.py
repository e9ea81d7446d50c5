"""The options that the commands run, plan, ablate, probe and certify share, as fields of a dataclass."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

from typer import Argument, Option

from arb.core.cli import SuiteOption, flags, stop
from arb.core.lazy import lazy_imports
from arb.judges.endpoints.providers import PROVIDERS
from arb.judges.types import OptionsError

with lazy_imports():
    from arb.core import suite as suites
    from arb.judges import registry
    from arb.judges.engine import storage
    from arb.judges.run import folder as run_folder
    from dataset_script import commands as dataset_commands
    from dataset_script import new_suite
    from dataset_script.sources import base as sources

_NO_RUNS = (
    "say which runs: --split dev or --split test of a suite, or --source FOLDER alone for runs of your own"
)


def complete_judge(incomplete: str) -> list[str]:
    """Complete a judge's name for the shell, in small letters; names with a space are left out."""
    names = (name.casefold() for entry in registry.entries() for name in entry.names)
    return [name for name in names if re.fullmatch(r"[\w.-]+", name) and name.startswith(incomplete)]


def complete_provider(incomplete: str) -> list[str]:
    """Complete a provider's name for the shell."""
    return [name for name in PROVIDERS if name.startswith(incomplete)]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a run as they were typed. `run.config` builds judge, models and ids from them."""

    judge: Annotated[
        str | None,
        Argument(
            help="A name from `list`; left out where --cascade names two.", autocompletion=complete_judge
        ),
    ] = None
    split: Annotated[
        Literal["dev", "test"] | None,
        Option(help="Of the suite; left out: all runs of --source, of no suite."),
    ] = None
    suite: SuiteOption = None
    source: Annotated[
        Path | None, Option(help="Recorded runs; ARB_DATA_DIR if left out, else the sample's own.")
    ] = None
    typed_source: Path | None = None
    """Not an option: the folder that ``--source`` named, if ``source`` is the dataset built from it."""
    skip_incomplete: Annotated[
        bool, Option("--skip-incomplete", help="Leave out runs that lack what the judge looks at.")
    ] = False

    model: Annotated[str | None, Option(help="The model of every role without its own.")] = None
    model_of: Annotated[
        list[str] | None,
        Option(help="ROLE=MODEL: the model of one role. Several times.", metavar="ROLE=MODEL"),
    ] = None
    provider: Annotated[
        str | None, Option(help=f"One of {', '.join(PROVIDERS)}.", autocompletion=complete_provider)
    ] = None
    base_url: Annotated[str | None, Option(help="Address of an endpoint.")] = None
    key_variable: Annotated[str | None, Option(help="The environment variable that holds the key.")] = None
    header: Annotated[
        list[str] | None,
        Option(help="Send another header; only its name is recorded. Repeat it.", metavar="NAME=VALUE"),
    ] = None
    temperature: Annotated[
        float | None, Option(help="0 if left out; 0.7 with --samples.", min=0.0, max=2.0)
    ] = None
    seed: Annotated[int | None, Option(help="0 if left out; none with --samples.")] = None
    max_output_tokens: Annotated[
        int | None,
        Option(help="The longest reply; 1024 if left out (reasoning models: 8192 or more).", min=1),
    ] = None
    logprobs: Annotated[
        bool, Option("--logprobs", help="Ask for log-probabilities, and make `score` from them.")
    ] = False
    reasoning_effort: Annotated[
        Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None,
        Option(help="How long a reasoning model may think; its own if left out."),
    ] = None
    structured_output: Annotated[
        bool,
        Option("--structured-output", help="Simplified judges: JSON of a fixed form, unlike in the paper."),
    ] = False
    prompt_cache: Annotated[
        Literal["system", "prompt"] | None,
        Option(help="What the provider is asked to keep: instructions, or all."),
    ] = None
    extra: Annotated[
        list[str] | None,
        Option(help="NAME=JSON: another field of the request. Several times.", metavar="NAME=JSON"),
    ] = None

    allow_dropped_params: Annotated[
        bool, Option("--allow-dropped-params", help="Run without parameters that the provider never takes.")
    ] = False

    samples: Annotated[int, Option(help="Answers for a trajectory.", min=1)] = 1
    vote: Annotated[Literal["all", "majority", "any"], Option(help="Which samples must say yes.")] = (
        "majority"
    )
    cascade: Annotated[
        str | None, Option(help="CHEAP,STRONG: two judges; the second where the first says yes.")
    ] = None
    cascade_band: Annotated[
        str | None,
        Option(
            help="The second also where the first's score lies in it; 0.2,0.8 if left out.",
            metavar="LOW,HIGH",
        ),
    ] = None
    cascade_trusts_yes: Annotated[
        bool, Option("--cascade-trusts-yes", help="A sure yes of the first needs no second.")
    ] = False
    threshold: Annotated[
        Path | None, Option(help="A threshold on `score`, chosen on dev (see `threshold`).")
    ] = None
    prompts: Annotated[Literal["own", "official"], Option(help="Whose wording is sent.")] = "own"
    prompts_from: Annotated[
        Path | None, Option(help="A checkout of Online-Mind2Web, for WebJudge's official wording.")
    ] = None
    compat: Annotated[bool, Option("--compat", help="NNetNav pairs changes as the released code did.")] = (
        False
    )

    max_in_flight: Annotated[int, Option(help="Calls under way at once.", min=1)] = 64
    requests_per_minute: Annotated[int | None, Option(help="No more requests than these.", min=1)] = None
    tokens_per_minute: Annotated[int | None, Option(help="No more tokens than these.", min=1)] = None
    rate_limit_timeout: Annotated[
        float | None,
        Option(help="Stop after so many seconds of nothing but rate limits; 900 if left out.", min=0.0),
    ] = None
    timeout: Annotated[
        float | None, Option(help="Seconds that a call may take; 300 if left out.", min=0.1)
    ] = None
    max_usd: Annotated[float | None, Option(help="Stop before more than this is spent.", min=0.0)] = None
    price: Annotated[
        list[str] | None,
        Option(
            help="Dollars for a million tokens, over the table's. Several times.",
            metavar="MODEL=IN,OUT[,CACHED]",
        ),
    ] = None
    prices: Annotated[Path | None, Option(help="A price table of your own (CSV).")] = None

    max_image_side: Annotated[int | None, Option(help="Scale larger pictures down (pixels).", min=16)] = None
    image_format: Annotated[
        Literal["png", "jpeg", "webp"] | None,
        Option(help="Convert pictures; WebJudge's are JPEG if left out."),
    ] = None
    image_detail: Annotated[
        Literal["auto", "low", "high"] | None,
        Option(help="The endpoint's detail flag; the judge's own if left out, else auto."),
    ] = None

    shard: Annotated[str | None, Option(help="i/n: the i-th of n parts, from 1.", metavar="I/N")] = None
    limit: Annotated[int | None, Option(help="The first so many trajectories.", min=1)] = None
    benchmark: Annotated[list[str] | None, Option(help="Only of this benchmark. Several times.")] = None
    agent: Annotated[list[str] | None, Option(help="Only of this agent. Several times.")] = None
    ids: Annotated[Path | None, Option(help="Only these trajectory ids, one a line.")] = None
    cache: Annotated[Path | None, Option(help="Where replies are kept; ARB_CACHE_DIR/calls if left out.")] = (
        None
    )
    refresh: Annotated[
        bool, Option("--refresh", help="Ask again, and pay again, although replies are in the cache.")
    ] = False
    cache_days: Annotated[
        float | None, Option(help="Ask again if a cached reply is older than so many days.", min=0.0)
    ] = None
    answers: Annotated[
        str | None, Option(help="Where a cluster keeps answers: folder, s3://, gs://; in the cache else.")
    ] = None

    @property
    def split_name(self) -> str:
        """The split. Raises OptionsError if none is named; see `with_built_source`."""
        if self.split is None:
            raise OptionsError(_NO_RUNS)
        return self.split


Options = TypeVar("Options", bound=RunOptions)

RetryOption = Annotated[
    str | None, Option("--retry", help="STATE,…: judge again what ended so.", metavar="STATE,…")
]

BatchOption = Annotated[bool, Option("--batch", help="Over the Batch API: half the price, within a day.")]


def with_run_options(
    *, without: Sequence[str] = (), defaults: Mapping[str, Any] = MappingProxyType({})
) -> Callable[[Callable], Callable]:
    """Give a command every field of its first parameter, ``options``, as an option of its own.

    ``options`` is RunOptions or a subclass. ``without`` names fields that the command does not take;
    ``defaults`` has other default values. Errors of the user (see `user_errors`) end the command with one
    line.
    """

    def decorate(command: Callable) -> Callable:
        hints = get_type_hints(command, include_extras=True)
        kind = hints["options"]
        shared = _shared_parameters(kind, without, defaults)
        own = list(inspect.signature(command).parameters.values())[1:]
        own = [each.replace(annotation=hints[each.name], kind=each.KEYWORD_ONLY) for each in own]

        @functools.wraps(command)
        def called(**values: Any) -> Any:
            chosen = {each.name: values.pop(each.name) for each in shared}
            try:
                return command(with_built_source(kind(**chosen)), **values)
            except user_errors() as problem:
                stop(str(problem))

        parameters = [*shared, *own]
        # inspect reads the signature here, which the type of functools.wraps does not know.
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in parameters}
        del called.__wrapped__  # inspect would read the parameters of the command instead
        return called

    return decorate


def with_built_source(options: Options) -> Options:
    """Return the options with suite and dataset of the source's runs, if no split is named.

    Raises OptionsError. May end the command like `read_source`.
    """
    if options.split is not None:
        return options
    if options.source is None:
        raise OptionsError(_NO_RUNS)
    if options.suite is not None:
        raise OptionsError(
            "--source and --suite: one or the other; --source alone judges the runs of the folder, all of "
            "them, and --suite judges those of the suite (with --split; --source then says where they lie)"
        )
    built = dataset_commands.read_source(options.source)
    return replace(
        options,
        suite=str(built.suite_folder),
        source=built.folder,
        split=new_suite.SOURCE_SPLIT,
        typed_source=options.source,
    )


def typed(options: RunOptions, **other: Any) -> list[str]:
    """Return the judge and the options as they were typed, as arguments of another command.

    ``other`` replaces some of them. The values of headers may be secrets and are left out.
    """
    values: dict[str, Any] = {each.name: getattr(options, each.name) for each in fields(RunOptions)}
    values["header"] = [f"{text.partition('=')[0]}=VALUE" for text in options.header or ()] or None
    if values.pop("typed_source") is not None:
        values |= {"source": options.typed_source, "suite": None, "split": None}
    defaults = {each.name: each.default for each in fields(RunOptions)}
    chosen = {name: value for name, value in (values | other).items() if value != defaults.get(name, MISSING)}
    judge = chosen.pop("judge", None)
    return [*([] if judge is None else [judge]), *flags(**chosen)]


def user_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that end a command with one line and no traceback."""
    of_files = run_folder.RunFolderError, sources.SourceError, storage.StorageError
    return OptionsError, suites.SuiteError, *of_files


def _shared_parameters(
    kind: type[RunOptions], without: Sequence[str], defaults: Mapping[str, Any]
) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    without = (*without, "typed_source")
    values = {each.name: each.default for each in fields(kind) if each.name not in without}
    values |= defaults
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if value is MISSING else value,
            annotation=hints[name],
        )
        for name, value in values.items()
    ]
