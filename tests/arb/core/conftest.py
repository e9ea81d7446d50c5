"""The small suite that tests of suites read."""

from tests.support.small_suite import suite, suite_folder  # noqa: F401 - fixtures
