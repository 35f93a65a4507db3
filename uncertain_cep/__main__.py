"""``python -m uncertain_cep``: the command line."""

from uncertain_cep.cli import main

if __name__ == "__main__":
    main(prog_name="uncertain-cep")
