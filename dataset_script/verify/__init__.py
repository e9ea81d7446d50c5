"""Check a published folder, or a repository on the Hub: what it claims, and what must not be in it."""

from dataset_script.prediction_file.findings import Finding
from dataset_script.verify.check import verify
from dataset_script.verify.findings import VerifyReport

__all__ = ["Finding", "VerifyReport", "verify"]
