"""From raw text to the arrays that the model reads: packing, batching, labels."""
