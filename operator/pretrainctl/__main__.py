"""`python -m pretrainctl`: the command line, where its script is not on the PATH."""

from pretrainctl.app import main

if __name__ == "__main__":
    main()
