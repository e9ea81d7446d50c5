"""How the Space is run: logs, metrics, security headers, the limit on checks."""
