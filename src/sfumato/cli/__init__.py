"""The command line: stdout carries data, stderr carries messages for people.

* ``commands``: the list of commands, each with its module; ``running``: runs a command line, and
  turns errors into exit codes
* ``options``, ``parsing`` and ``paths``: options, and how their text is read; ``layers``: --help
  and --help-all; ``output``: how commands print
* ``question_command`` and ``publishing``: commands that ask one question about one file;
  ``histogram``: counts; ``partition``: maps; ``questions``: clusters, persons, quantiles and tables
* ``init``, ``plans``, ``stream``, ``local``, ``ledger``, ``choose``, ``audit`` and ``reports``:
  the other commands
"""

from sfumato.cli.commands import COMMANDS, cli, own_questions
from sfumato.cli.running import main, run

__all__ = ["COMMANDS", "cli", "main", "own_questions", "run"]
