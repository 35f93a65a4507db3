"""Tests of uncertain-cep."""
