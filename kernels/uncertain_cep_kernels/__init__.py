"""Compiled kernels of uncertain-cep, in the folder ``compiled``."""
