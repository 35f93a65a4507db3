"""``python -m uncertain_cep``: the command line."""

from uncertain_cep.cli.command_process import run

if __name__ == "__main__":
    run()
