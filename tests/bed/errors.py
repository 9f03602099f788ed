"""The one way in which the bed fails."""


class BedError(Exception):
    """A part did not do what it should; the message says which, where its log is, what to do."""
