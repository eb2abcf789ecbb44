"""`python -m isotherm VERB ...`: the command line of isotherm, with policies in Python beside the others."""

import signal
import sys

from . import _isotherm


def main() -> int:
    # The command line's own code handles Ctrl-C, as in the program isotherm.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _isotherm.main(["isotherm", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
