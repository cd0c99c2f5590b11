"""A reader of Spack recipes without Spack: it executes them with stand-ins for Spack's names."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

CHECKOUT = Path(__file__).resolve().parent.parent
REPOSITORY = CHECKOUT / "spack" / "spack_repo" / "switchpoint"
BASES = {
    "spack_repo.builtin.build_systems.cmake": "CMakePackage",
    "spack_repo.builtin.build_systems.python": "PythonPackage",
}


@dataclass
class Recipe:
    """The directives of one recipe; conditions and types are those in force."""

    cls: type | None = None
    base: str = ""
    versions: dict[str, dict[str, Any]] = field(default_factory=dict)
    variants: dict[str, Any] = field(default_factory=dict)
    dependencies: dict[str, dict[str, Any]] = field(default_factory=dict)  # by spec
    licenses: list[str] = field(default_factory=list)
    conflicting: dict[str, str] = field(default_factory=dict)  # spec: condition
    in_force: dict[str, Any] = field(default_factory=dict)

    def version(self, name: str, **facts: Any) -> None:
        self.versions[name] = facts

    def variant(self, name: str, *, default: Any, description: str) -> None:
        assert description
        self.variants[name] = default

    def depends_on(self, spec: str, **facts: Any) -> None:
        assert spec not in self.dependencies, f"{spec} is named twice"
        self.dependencies[spec] = self.in_force | facts

    def conflicts(self, spec: str, *, when: str = "", msg: str) -> None:
        assert msg
        self.conflicting[spec] = when

    def license(self, name: str) -> None:
        self.licenses.append(name)

    @contextmanager
    def default_args(self, **facts: Any) -> Iterator[None]:
        before, self.in_force = self.in_force, self.in_force | facts
        yield
        self.in_force = before

    def when(self, condition: str) -> Any:
        return self.default_args(when=condition)


def read(package: str) -> Recipe:
    """Execute the recipe in the directory of this name; return its directives."""
    recipe = Recipe()
    api = ModuleType("spack.package")
    for directive in (
        "version",
        "variant",
        "depends_on",
        "conflicts",
        "license",
        "default_args",
        "when",
    ):
        setattr(api, directive, getattr(recipe, directive))
    api.join_path = lambda *parts: "/".join(parts)
    api.force_remove = lambda path: Path(path).unlink(missing_ok=True)
    api.run_before = lambda phase: lambda function: function
    modules = {"spack": ModuleType("spack"), "spack.package": api}
    for name, base in BASES.items():
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            modules.setdefault(".".join(parts[:end]), ModuleType(parts[end - 1]))
        setattr(modules[name], base, type(base, (), {}))
    with mock.patch.dict(sys.modules, modules):
        names = runpy.run_path(str(REPOSITORY / "packages" / package / "package.py"))
    (recipe.cls,) = [
        each
        for each in names.values()
        if isinstance(each, type) and each.__name__ not in BASES.values()
    ]
    recipe.base = recipe.cls.__mro__[1].__name__
    return recipe
