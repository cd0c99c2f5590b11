"""Figures as pure functions: frames of the store in, plain Plotly dicts out.

A dict costs a millisecond where a `go.Figure` costs a hundred; the tests validate each with
`go.Figure`. Ink, grid and background follow the page's light or dark theme in the style sheet.
"""
