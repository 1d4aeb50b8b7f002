"""The command where no file can have more than so many bytes: first the number, then its words."""

import resource
import sys

from hilltop.cli.main import main

if __name__ == "__main__":
    _, size, *words = sys.argv
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), int(size)))
    sys.exit(main(words))
