"""The tests of kbert: a folder for each room, a file for each module."""
