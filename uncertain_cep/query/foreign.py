"""Constructs of other languages for patterns and for tables, and how each is written here."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["FOREIGN", "as_written_here"]

FOREIGN: Final[dict[str, str]] = {
    # Flink CEP
    r"\bPattern\s*\.\s*<?|\.\s*begin\s*\(": "PATTERN SEQ(A a, B b), types and variables in their order",
    r"\bfollowedByAny\b": "SEQ(A a, B b): skip_till_any_match is the default",
    r"\bfollowedBy\b": "SEQ(A a, B b) and WHERE skip_till_next_match(a, b)",
    r"\bnot(Next|FollowedBy)\b": "a negation in SEQ: SEQ(A a, !B b, C c)",
    r"\.\s*next\s*\(": "SEQ(A a, B b) and WHERE strict_contiguity(a, b)",
    r"\boneOrMore\b": "a Kleene component: SEQ(A+ c[], B b)",
    r"\btimes(OrMore)?\s*\(": "how often behind the type: SEQ(A{3} c[])",
    r"\.\s*optional\s*\(": "how often behind the type: SEQ(A a, B? b)",
    r"\.\s*(consecutive|allowCombinations)\s*\(": (
        "a strategy in WHERE: skip_till_any_match, skip_till_next_match or strict_contiguity"
    ),
    r"\.\s*until\s*\(": "UNTIL behind what it ends, or a condition of each event: WHERE c[i].x < 5",
    r"\bSimpleCondition\b|\.\s*where\s*\(|\.\s*subtype\s*\(": "WHERE a.x > 3 AND a.k = b.k",
    r"\bwithin\s*\(": "WITHIN 10 seconds",
    r"\bAfterMatchSkipStrategy\b|\bAFTER\s+MATCH\b|\b(skip_?)?past_?last|\bskip_?to_?(first|last)": (
        "SEQ(!C m, C+ c[], !C n) for sessions, RETURN PROBABILITY EVERY 10 minutes for one alert a bucket"
    ),
    r"\b(throttle|suppress|output\s+(first|last|snapshot)|limit\s+\d+\s+(per|by))\b"
    r"|\bfirst(\s*\([^()]*\)\s*|[\s_]+)(per|by|of_each)": (
        "RETURN PROBABILITY BY host EVERY 10 minutes: one row a key and bucket"
    ),
    r"\bgreedy\b|\b(maximal|longest)\s*\(|[+*?}]\+": (
        "a negation of what would go on: SEQ(A a, C+ c[], !C n, D d)"
    ),
    r"[+*?}]\?": "the sign alone, which is not greedy: SEQ(A a, C+ c[], D d) has a match for each list of C",
    # Esper EPL
    r"\bpattern\s*\[": "PATTERN SEQ(A a, B b)",
    r"->|\bfollowed\s+by\b": "SEQ(A a, B b)",
    r"\btimer\s*:|\bwin\s*:|#\s*\w+\s*\(": "WITHIN 10 seconds",
    r"\bevery(-distinct)?\b(?!\s+[0-9$])": "SEQ(A a, B b) alone: every match is found",
    r"\b\w+\s*=\s*\w+\s*\([^()]*[<>=]": "SEQ(A a) and WHERE a.x > 3",
    # MATCH_RECOGNIZE
    r"\bMATCH_RECOGNIZE\b": "PATTERN SEQ(A a, B b); uc.sql(text), or a file named *.sql, translates it",
    r"\bPATTERN\s*\(": "PATTERN SEQ(A a, B+ b[], C c), with a type and a variable for each",
    r"\bDEFINE\b": "conditions in WHERE: WHERE b.x > a.x AND c[i].x > c[i-1].x",
    r"\bMEASURES\b": "RETURN a.x AS x, c[c.LEN].y AS last",
    r"\bPARTITION\s+BY\b": "WHERE [attr]: all events agree on attr",
    r"\b(ONE|ALL)\s+ROWS?\s+PER\s+MATCH\b": (
        "RETURN a.x, b.y: a row is a match, and uc.events_of gives a row for each event"
    ),
    r"\bPREV\s*\(": "the event before in a Kleene component: c[i-1].x",
    r"\bNEXT\s*\(": "the condition at the later event: c[i].x > c[i-1].x",
    r"\bFIRST\s*\(": "the first event of a Kleene component: first(c[].x), or c[1].x",
    r"\bLAST\s*\(": "the last event of a Kleene component: last(c[].x), or c[c.LEN].x",
    r"\bCLASSIFIER\s*\(": "variables in RETURN: RETURN a, b",
    r"\bMATCH_NUMBER\s*\(": (
        "variables in RETURN, which tell matches apart where their number differs by world: RETURN a, b"
    ),
    r"\bSUBSET\b": "OR, or types in parentheses: SEQ((A|B) a, C c)",
    r"\bPERMUTE\s*\(": "AND(A a, B b): events in any order",
    # OpenCEP
    r"\bPatternStructure\b|\bPrimitiveEventStructure\b|\bSeqOperator\b": "PATTERN SEQ(A a, B b)",
    r"\bAndOperator\b": "PATTERN AND(A a, B b)",
    r"\bOrOperator\b": "PATTERN OR(A a, B b)",
    r"\bNegationOperator\b": "a negation in SEQ: SEQ(A a, !B b, C c)",
    r"\bKleeneClosureOperator\b": "a Kleene component: SEQ(A+ c[], B b)",
    r"\b\w+(Condition|Formula)\s*\(|\bVariable\s*\(|\blambda\b": "WHERE a.x > 3 AND a.k = b.k",
    r"\btimedelta\s*\(": "WITHIN 10 seconds",
    # SQL
    r"\bSELECT\b": "PATTERN SEQ(A a, B b) WITHIN 10 seconds RETURN a.x",
    r"\bFROM\s+\w+\s*(WHERE|GROUP|ORDER|;|$)": "PATTERN SEQ(A a, B b): the trace is given beside the query",
    r"\bGROUP\s+BY\b|(?<!EXPECTED )\bCOUNT\s+BY\b": "RETURN EXPECTED COUNT BY attr",
    r"\b(COUNT|PROBABILITY(\s+OF\s+AT\s+LEAST\s+\d+)?)\s+BY\s+(\w+,\s*)*\w+(?=\s*\.)": (
        "the attribute alone, BY host: events agree on it, WHERE [host]"
    ),
    r"\bINTERVAL\b": "a number and a unit: 5 minutes",
    r"::": "CAST(x AS BIGINT)",
    r"\bEXTRACT\s*\(|\bDATE_PART\s*\(": "HOUR(a.ts), DAYOFWEEK(a.ts) or DATE_TRUNC('day', a.ts)",
    r"\b(DATEDIFF|TIMESTAMPDIFF|DATE_DIFF|AGE)\s*\(": "a difference: b.ts - a.ts < 5 minutes",
    r"\b(NOW|CURRENT_TIMESTAMP|CURRENT_DATE|GETDATE)\b": "the time itself: TIMESTAMP '2024-05-01 12:00:00'",
    r"\b(IF|IIF)\s*\(": "CASE WHEN a.x > 3 THEN 1 ELSE 0 END",
    r"\b(NVL|ISNULL)\s*\(": "COALESCE(a.x, 0)",
    r"[\w\]`)]\s+(NOT\s+)?(RLIKE|SIMILAR\s+TO|GLOB|MATCHES)\s*['\"$]|\bREGEXP_(MATCHES|LIKE)\b": (
        "REGEXP: a.s REGEXP '^err'"
    ),
    r"\bMOD\s*\(": "x % y",
    r"\bLOG\s*\(|\bLOG10\s*\(": "LN(x), or LN(x) / LN(10)",
    r"\bDISTINCT\s+FROM\b": "a.x = b.x OR a.x IS NULL AND b.x IS NULL",
    r"\b(MIN|MAX)\s*\([^()\[\]]*,": "LEAST(x, y) and GREATEST(x, y)",
    r"\b(AVG|SUM|COUNT|MIN|MAX)\s*\(\s*(\*|\w+(\.\w+)?)\s*\)": (
        "an aggregate over a Kleene component: avg(c[].x), count(c[])"
    ),
}
"""By a regular expression that finds the construct, in any case."""

_FARTHEST: Final = 16
"""Characters between a construct and the place that cannot be read because of it."""

_FOREIGN: Final = [(re.compile(regex, re.IGNORECASE), here) for regex, here in FOREIGN.items()]
_QUOTED: Final = re.compile(r"""'[^'\n]*'|"[^"\n]*"|`[^`\n]*`|--[^\n]*""")


def as_written_here(text: str, place: int, farthest: int = _FARTHEST) -> str:
    """Return how to write the foreign construct nearest to a place of a query, behind a colon.

    It is "" if there is none at most ``farthest`` characters away.
    """
    # What is quoted is no construct.
    bare = _QUOTED.sub(lambda match: match[0][0] + " " * (len(match[0]) - 1), text)
    constructs = [
        (abs(place - match.start()) if place < match.start() else max(0, place - match.end()), number, here)
        for number, (regex, here) in enumerate(_FOREIGN)
        for match in regex.finditer(bare)
    ]
    near = [each for each in constructs if each[0] <= farthest]
    return f": write {min(near)[2]}" if near else ""
