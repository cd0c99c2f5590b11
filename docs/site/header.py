"""The reference of switchpoint.h: its sections, comments and declarations as a page."""

from __future__ import annotations

import re

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SECTION = re.compile(r"/\* ---- (.*?) -+ \*/")
_GUARDS = re.compile(r"^#(?:ifn?def|endif|include <|pragma|define SWITCHPOINT_H).*\n", re.MULTILINE)


def reference(header: str) -> str:
    """Return the page of a header."""
    parts = _SECTION.split(header)
    text = "# switchpoint.h\n\n" + _blocks(parts[0].replace("switchpoint.h: plan", "Plan"))
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        text += f"## {title}\n\n{_blocks(body)}"
    return text


def _blocks(body: str) -> str:
    """Return the blocks of a section: a comment of its own line is prose for what follows it."""
    text = ""
    for block in re.split(r"\n{2,}", _GUARDS.sub("", body).replace('extern "C" {\n', "").strip()):
        comment = _COMMENT.match(block)
        code = block[comment.end() :].strip() if comment else block
        if code in ("", "}"):
            text += _prose(comment[0]) if comment else ""
            continue
        names = re.findall(r"\b(swp_\w+)\(", _COMMENT.sub("", code))
        names = names or re.findall(r"(?:struct|enum) (swp_\w+)", code)[:1]
        text += f"### {', '.join(dict.fromkeys(names))}\n\n" if names else ""
        text += _prose(comment[0]) if comment else ""
        text += f"```c\n{code}\n```\n\n"
    return text


def _prose(comment: str) -> str:
    """Return a comment as Markdown; lines that are indented keep their form."""
    lines = re.sub(r"^ ?\*? ?", "", comment[2:-2].strip(), flags=re.MULTILINE).splitlines()
    text = "\n".join(f"    {line}" if line.startswith("  ") else line.strip() for line in lines)
    return re.sub(r"(?<![`\w])(swp_\w+(?:\(\))?|SWP_\w+|SWITCHPOINT_\w+)", r"`\1`", text) + "\n\n"
