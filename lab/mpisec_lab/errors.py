"""The lab's one exception."""


class LabError(Exception):
    """What went wrong, as a sentence for the user, and what to do."""
