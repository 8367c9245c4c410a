"""Tasks: a head on the backbone, from raw text to a person's answer."""
