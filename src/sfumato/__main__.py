"""``python -m sfumato`` is the command line."""

from sfumato.cli import main

main()
