"""The options shared by the commands `run`, `plan`, `ablate`, `probe` and `certify`."""

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

from arb.core.cli import (
    AgentFromOption,
    SuiteOption,
    file_option,
    flags,
    folder_option,
    new_folder_option,
    stop,
)
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
    from dataset_script.sources import files as sources

_NO_RUNS = (
    "choose the runs to judge: --split dev or --split test for those of a suite, or --source FOLDER without "
    "--split for your own"
)


def complete_judge(incomplete: str) -> list[str]:
    """Return shell completions of a judge's name, in lower case and without names that need quotes."""
    names = (name.casefold() for entry in registry.entries() for name in entry.names)
    return [name for name in names if re.fullmatch(r"[\w.-]+", name) and name.startswith(incomplete)]


def complete_provider(incomplete: str) -> list[str]:
    """Return shell completions of a provider's name."""
    return [name for name in PROVIDERS if name.startswith(incomplete)]


# The headings in the help, in their order; each makes options under it.
_data = functools.partial(Option, rich_help_panel="Data")
_endpoint = functools.partial(Option, rich_help_panel="Model and endpoint")
_request = functools.partial(Option, rich_help_panel="Requests")
_prompt = functools.partial(Option, rich_help_panel="Prompts and pictures")
_verdict = functools.partial(Option, rich_help_panel="Verdicts")
_limit = functools.partial(Option, rich_help_panel="Budget and limits")
_cache = functools.partial(Option, rich_help_panel="Cache")
_execution = functools.partial(Option, rich_help_panel="Execution")


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a run as typed by the user. `arb.judges.run.config` turns them into a `RunConfig`."""

    judge: Annotated[
        str | None,
        Argument(help="Run this judge (see `list`); omit it with --cascade.", autocompletion=complete_judge),
    ] = None

    split: Annotated[
        Literal["dev", "test"] | None, _data(help="Judge this split (default: all runs of --source).")
    ] = None
    suite: SuiteOption = None
    source: Annotated[
        Path | None,
        _data(exists=True, help="Read runs from this folder (default: ARB_DATA_DIR or the sample)."),
    ] = None
    agent_from: AgentFromOption = None
    typed_source: Path | None = None
    """Not an option: the user's ``--source`` if ``source`` is a dataset that was built from it."""
    benchmark: Annotated[list[str] | None, _data(help="Judge only this benchmark. Repeat to add more.")] = (
        None
    )
    agent: Annotated[list[str] | None, _data(help="Judge only this agent. Repeat to add more.")] = None
    ids: Annotated[
        Path | None,
        file_option(help="Judge only the ids in this file (one per line).", rich_help_panel="Data"),
    ] = None
    shard: Annotated[str | None, _data(help="Judge only part I of N, such as 1/4.", metavar="I/N")] = None
    limit: Annotated[int | None, _data(help="Judge only the first N trajectories.", min=1)] = None
    skip_incomplete: Annotated[
        bool, _data("--skip-incomplete", help="Skip runs that lack trees or screenshots the judge needs.")
    ] = False

    model: Annotated[str | None, _endpoint(help="Use this model (default: the judge's own).")] = None
    model_of: Annotated[
        list[str] | None,
        _endpoint(help="Use this model in one role. Repeat to add more.", metavar="ROLE=MODEL"),
    ] = None
    provider: Annotated[
        str | None,
        _endpoint(help=f"Use this provider: {', '.join(PROVIDERS)}.", autocompletion=complete_provider),
    ] = None
    base_url: Annotated[str | None, _endpoint(help="Send requests to the endpoint at this URL.")] = None
    key_variable: Annotated[
        str | None, _endpoint(help="Read the API key from this environment variable.")
    ] = None
    header: Annotated[
        list[str] | None,
        _endpoint(
            help="Send this header; only its name is recorded. Repeat to add more.", metavar="NAME=VALUE"
        ),
    ] = None

    temperature: Annotated[
        float | None, _request(help="Set the temperature (default: 0; 0.7 with --samples).", min=0.0, max=2.0)
    ] = None
    seed: Annotated[int | None, _request(help="Send this seed (default: 0; none with --samples).")] = None
    max_output_tokens: Annotated[
        int | None,
        _request(help="Limit each reply to N tokens (default: 1024; reasoning models: 8192 or more).", min=1),
    ] = None
    reasoning_effort: Annotated[
        Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None,
        _request(help="Set the reasoning effort (default: the model's own)."),
    ] = None
    logprobs: Annotated[
        bool, _request("--logprobs", help="Request log-probabilities and compute scores from them.")
    ] = False
    structured_output: Annotated[
        bool,
        _request("--structured-output", help="Request JSON from simplified judges, unlike in the paper."),
    ] = False
    prompt_cache: Annotated[
        Literal["system", "prompt"] | None,
        _request(help="Ask the provider to cache system messages or whole prompts."),
    ] = None
    extra: Annotated[
        list[str] | None,
        _request(help="Add this field to each request. Repeat to add more.", metavar="NAME=JSON"),
    ] = None
    allow_dropped_params: Annotated[
        bool, _request("--allow-dropped-params", help="Leave out parameters that the provider never accepts.")
    ] = False

    prompts: Annotated[
        Literal["own", "official"], _prompt(help="Use our prompts (own) or the judge's authors' (official).")
    ] = "own"
    prompts_from: Annotated[
        Path | None,
        folder_option(
            help="Read WebJudge's prompts from this checkout of Online-Mind2Web.",
            rich_help_panel="Prompts and pictures",
        ),
    ] = None
    compat: Annotated[
        bool, _prompt("--compat", help="Pair state changes and actions as NNetNav's released code does.")
    ] = False
    max_image_side: Annotated[
        int | None, _prompt(help="Limit the longer side of pictures to N pixels.", min=16)
    ] = None
    image_format: Annotated[
        Literal["png", "jpeg", "webp"] | None,
        _prompt(help="Convert pictures to this format (default: as recorded; for WebJudge: jpeg)."),
    ] = None
    image_detail: Annotated[
        Literal["auto", "low", "high"] | None,
        _prompt(help="Set the `detail` of pictures in requests (default: the judge's, else auto)."),
    ] = None

    samples: Annotated[
        int, _verdict(help="Judge each trajectory N times and combine the answers.", min=1, max=1000)
    ] = 1
    vote: Annotated[
        Literal["all", "majority", "any"], _verdict(help="Set how many of the --samples must say yes.")
    ] = "majority"
    cascade: Annotated[
        str | None, _verdict(help="Run CHEAP; also ask STRONG if CHEAP says yes.", metavar="CHEAP,STRONG")
    ] = None
    cascade_band: Annotated[
        str | None,
        _verdict(
            help="Also ask STRONG if CHEAP scores in this range (default: 0.2,0.8).", metavar="LOW,HIGH"
        ),
    ] = None
    cascade_trusts_yes: Annotated[
        bool,
        _verdict("--cascade-trusts-yes", help="Accept a confident yes from CHEAP without asking STRONG."),
    ] = False
    threshold: Annotated[
        Path | None,
        file_option(
            help="Decide by score, with this threshold from `judges threshold`.", rich_help_panel="Verdicts"
        ),
    ] = None

    max_usd: Annotated[float | None, _limit(help="Stop before spending more than N dollars.", min=0.0)] = None
    price: Annotated[
        list[str] | None,
        _limit(
            help="Set a price in dollars per million tokens. Repeat to add more.",
            metavar="MODEL=IN,OUT[,CACHED]",
        ),
    ] = None
    prices: Annotated[
        Path | None,
        file_option(help="Read prices from this CSV file.", rich_help_panel="Budget and limits"),
    ] = None

    max_in_flight: Annotated[int, _limit(help="Make at most N calls at the same time.", min=1)] = 64
    requests_per_minute: Annotated[int | None, _limit(help="Limit the requests per minute.", min=1)] = None
    tokens_per_minute: Annotated[int | None, _limit(help="Limit the tokens per minute.", min=1)] = None
    rate_limit_timeout: Annotated[
        float | None, _limit(help="Stop if every call is rate-limited for N seconds (default: 900).", min=0.0)
    ] = None
    timeout: Annotated[float | None, _limit(help="Limit each call to N seconds (default: 300).", min=0.1)] = (
        None
    )

    cache: Annotated[
        Path | None,
        new_folder_option(help="Cache replies here (default: ARB_CACHE_DIR/calls).", rich_help_panel="Cache"),
    ] = None
    refresh: Annotated[bool, _cache("--refresh", help="Ignore cached replies and pay for new ones.")] = False
    cache_days: Annotated[float | None, _cache(help="Ignore cached replies older than N days.", min=0.0)] = (
        None
    )
    answers: Annotated[
        str | None, _cache(help="Share replies in this folder or s3:// or gs:// URL (default: the cache).")
    ] = None

    @property
    def split_name(self) -> str:
        """The split to judge. Raises OptionsError if the user chose neither a split nor a source."""
        if self.split is None:
            raise OptionsError(_NO_RUNS)
        return self.split


Options = TypeVar("Options", bound=RunOptions)

RetryOption = Annotated[
    str | None, _execution("--retry", help="Judge trajectories in these states again.", metavar="STATE,…")
]

BatchOption = Annotated[
    bool, _execution("--batch", help="Use the Batch API: half the price, replies within a day.")
]


def with_run_options(
    *, without: Sequence[str] = (), defaults: Mapping[str, Any] = MappingProxyType({})
) -> Callable[[Callable], Callable]:
    """Return a decorator that makes each field of a command's first parameter an option of the command.

    That parameter must be named ``options`` and have the type RunOptions or a subclass. ``without`` names
    fields to leave out, and ``defaults`` replaces default values. If the command raises one of `user_errors`,
    only its message is printed.
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
        # inspect reads this attribute, which the type of functools.wraps does not have.
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in parameters}
        del called.__wrapped__  # inspect would read the parameters of the command instead
        return called

    return decorate


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


def typed(options: RunOptions, **other: Any) -> list[str]:
    """Return command-line arguments that repeat these options, for the next command to suggest to the user.

    Options with their default value are left out. ``other`` replaces or adds options. Since the values of
    headers may be secrets, they are replaced by ``VALUE``.
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
    """Return the exceptions whose message is shown to the user without a traceback."""
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
