"""Run the command line with `python -m bakeoff`."""

from bakeoff.cli.main import main

main()
