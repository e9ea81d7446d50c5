"""``python -m submissions export-labels``: a published label set as a file again."""

from pathlib import Path
from typing import Annotated

import typer

from dataset_script.command_line import read_settings, read_suite, stop


def export_labels(
    out: Annotated[Path, typer.Option(dir_okay=False, help="The CSV file to write; a new one.")],
    version: Annotated[str | None, typer.Option(help="A version; the newest if left out.")] = None,
) -> None:
    """Write a published label set to a file in the released format, as it was published.

    It holds test labels: only its owner may read it, and it belongs to no public folder.
    """
    from submissions.database import DatabaseUnavailable
    from submissions.label_versions import published_versions
    from submissions.service import SubmissionService

    settings = read_settings()
    read_suite(None, settings)
    if out.exists():
        stop(f"{out} is there already and is not written over; name a new file")
    service = SubmissionService(settings)
    try:
        known = published_versions(service.engine, service.suite.name)
    except DatabaseUnavailable as problem:
        stop(str(problem))
    found = next((each for each in reversed(known) if version in (None, each.version)), None)
    if found is None:
        there = ", ".join(each.version for each in known) or "none; `publish-labels` publishes one"
        stop(f"no label set {version or ''} of {service.suite.name}: there are {there}".replace("  ", " "), 1)
    try:
        content = service.files.read(found.file_sha256)
        out.touch(mode=0o600, exist_ok=False)
        out.write_bytes(content)
    except ValueError as problem:
        stop(str(problem), code=1)
    except OSError as problem:
        stop(f"{out} cannot be written: {problem.strerror or type(problem).__name__}", code=1)
    typer.echo(f"{out.name}: label version {found.version} of {service.suite.name}")
