"""Recipes for other packagers, and the archive of sources that they name."""
