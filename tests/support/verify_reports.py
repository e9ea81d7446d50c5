"""What the tests of `verify` look for in its reports, and two ids of the folder that they plant things in."""

DEV = "shop/Agent-a/shop.1"
TEST = "shop/Agent-a/shop.2"


def found(report):
    """Codes with the file and the names in it."""
    return {(finding.code, finding.file): finding.names for finding in report.findings}


def codes(report):
    return {finding.code for finding in report.findings}
