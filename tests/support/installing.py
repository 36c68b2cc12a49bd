"""A folder that holds an installed package: its module, and the metadata that an installer writes."""

from __future__ import annotations

from pathlib import Path


def installed(folder: Path, package: str, code: str, **questions: str) -> Path:
    """Install a package of one module, which declares questions: command's name = "Class"."""
    module = package.replace("-", "_")
    metadata = folder / f"{module}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (folder / f"{module}.py").write_text(code, encoding="utf-8")
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name.replace('_', '-')} = {module}:{kind}" for name, kind in questions.items()]
    (metadata / "entry_points.txt").write_text("\n".join(["[console_scripts]", "other = os:getcwd", "[sfumato.questions]", *lines, ""]))
    return folder
