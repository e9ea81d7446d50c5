"""What a ``suite.toml`` holds beside its rules, and the suites that come with the code, a folder each."""
