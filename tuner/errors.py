"""What goes wrong in ways that a user can understand and mend."""


class SwitchpointError(Exception):
    """An error whose text is one clear line: what, where, and what to do."""
