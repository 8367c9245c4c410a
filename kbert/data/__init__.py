"""File formats to records: plain Python and numpy, no model."""
