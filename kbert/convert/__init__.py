"""Between formats: what a model's files hold, and the same model in other files."""
