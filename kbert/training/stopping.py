"""To be stopped from outside without losing a step."""

import signal
import threading

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopRequest:
    """Whether the system, or a person at the keyboard, has asked to stop.

    Within its `with` block the first SIGTERM or SIGINT (Ctrl+C) is noted, for a
    training to save and leave after the step at hand; a second one ends the process
    as it would have without this. In another thread than the main one, which gets no
    signals, nothing is noted.

    Attributes:
        received: the number of the signal, or None.

    Example:
    >>> import os, signal
    >>> from kbert.training.stopping import StopRequest
    >>> with StopRequest() as stop:
    ...     os.kill(os.getpid(), signal.SIGTERM)
    >>> stop.received == signal.SIGTERM
    True
    """

    def __init__(self):
        self.received: int | None = None
        self._before: dict = {}

    def __enter__(self):
        """Starts to listen."""
        if threading.current_thread() is threading.main_thread():
            for each in SIGNALS:
                self._before[each] = signal.signal(each, self._note)
        return self

    def __exit__(self, *exception):
        """Stops to listen."""
        self._restore()

    def _note(self, number, frame):
        self.received = number
        self._restore()

    def _restore(self):
        for each, handler in self._before.items():
            # None is one that no Python code set, which cannot be set again.
            signal.signal(each, signal.SIG_DFL if handler is None else handler)
        self._before = {}
