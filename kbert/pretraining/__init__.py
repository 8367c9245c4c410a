"""From a corpus to instances of pre-training, and from these to batches."""
