"""`python -m tracekit`: the command line, where no script is on the PATH."""

from tracekit.cli.entry import main

if __name__ == "__main__":
    main()
