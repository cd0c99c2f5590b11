"""The grouped subcommands of `switchpoint`, one file per group."""
