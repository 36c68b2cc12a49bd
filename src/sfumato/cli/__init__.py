"""The command line: stdout carries data, stderr carries messages for people.

``commands`` lists the commands, and each command is in the module of its name. ``running`` runs a
command line and turns errors into exit codes.
"""

from sfumato.cli.commands import COMMANDS, cli, own_questions
from sfumato.cli.running import main, run

__all__ = ["COMMANDS", "cli", "main", "own_questions", "run"]
