"""Questions answered by measuring and choosing, each by a command: the papers', and regret."""
