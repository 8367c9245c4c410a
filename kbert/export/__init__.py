"""From a task to a folder that serves it without kbert."""
