"""Errors that a user can understand and fix."""


class SwitchpointError(Exception):
    """An error whose message is one clear line: what, where, and what to do."""
