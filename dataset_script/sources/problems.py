"""What may be wrong with a source, a file or a run."""

from dataclasses import dataclass


class SourceError(ValueError):
    """Raised for a folder that is not a usable source of runs; the message says what was expected."""


class UnusableFileError(ValueError):
    """Raised for a file without a usable run; ``code`` is one of `build.report.LEFT_OUT`."""

    def __init__(self, code: str, detail: str = ""):
        super().__init__(code, detail)
        self.code, self.detail = code, detail

    def __str__(self) -> str:
        return self.detail


@dataclass(frozen=True, slots=True)
class Note:
    """A remark on something odd in a file that is used anyway; ``code`` is one of `build.report.NOTES`."""

    code: str
    detail: str = ""
