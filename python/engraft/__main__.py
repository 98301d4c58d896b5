"""`python -m engraft`: the program `engraft`."""

from ._program import main

if __name__ == "__main__":
    main()
