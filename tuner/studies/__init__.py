"""Questions answered by measuring, each by a command: those of the papers, and regret."""
