"""`python -m millrace`: the program, in place of this process."""

import os
import sys

from ._errors import Error
from ._program import find_program


def main() -> None:
    try:
        program = find_program()
        os.execv(program, [program, *sys.argv[1:]])
    except (Error, OSError) as error:
        sys.exit(f"millrace: {error}")


if __name__ == "__main__":
    main()
