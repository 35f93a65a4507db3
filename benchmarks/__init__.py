"""How fast uncertain_cep is, beside its targets and its peers: ``python -m benchmarks --help``."""
