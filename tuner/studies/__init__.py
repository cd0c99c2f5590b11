"""Studies of the papers on simulated machines; each is a command, and its launches a campaign."""
