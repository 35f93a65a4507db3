"""The query language: text to syntax tree, checked, and bound to the columns of a trace."""

from uncertain_cep.query.binder import bind, bind_row_condition
from uncertain_cep.query.checker import check
from uncertain_cep.query.expression_text import format_expression
from uncertain_cep.query.parameters import Parameters, values_of
from uncertain_cep.query.parser import parse, parse_row_condition, query_of
from uncertain_cep.query.syntax import Query
from uncertain_cep.query.walks import attributes_in

__all__ = [
    "Parameters",
    "Query",
    "attributes_in",
    "bind",
    "bind_row_condition",
    "check",
    "format_expression",
    "parse",
    "parse_row_condition",
    "query_of",
    "values_of",
]
