"""Running the Space: logs, metrics, limits, security headers."""
