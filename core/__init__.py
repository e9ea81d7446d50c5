"""What every package shares. Imports nothing of ours."""
