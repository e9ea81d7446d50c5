"""The command that puts the Space on the Hub."""
