"""From recorded runs to the published folder."""
