"""TensorFlow's checkpoints without TensorFlow: files, and names of a BERT."""
