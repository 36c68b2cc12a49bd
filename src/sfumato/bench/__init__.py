"""Claims of speed as commands that anyone can run: each figure beside its peer or floor, in the same run."""

from sfumato.bench.run import SUBJECTS, picture, run

__all__ = ["SUBJECTS", "picture", "run"]
