"""The subcommands of `switchpoint` that come in groups, a file a group."""
