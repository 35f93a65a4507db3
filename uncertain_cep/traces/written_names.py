"""Names of months in twelve languages, and abbreviations of time zones that mean one offset."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["AMBIGUOUS_ZONES", "ENGLISH_MONTHS", "MONTH_NAMES", "UNREAD_ZONES", "ZONES", "any_name"]

ENGLISH_MONTHS: Final = (
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
    "november", "december",
)  # fmt: skip
"""Short and long ones."""

_LANGUAGES: Final = (
    # German
    "jan feb mär apr mai jun jul aug sep okt nov dez",
    "januar februar märz april mai juni juli august september oktober november dezember",
    "jän feb mrz apr mai jun jul aug sept okt nov dez",
    # French
    "janv févr mars avr mai juin juil août sept oct nov déc",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "janv fevr mars avr mai juin juil aout sept oct nov dec",
    # Spanish
    "ene feb mar abr may jun jul ago sep oct nov dic",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    # Italian
    "gen feb mar apr mag giu lug ago set ott nov dic",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    # Portuguese
    "jan fev mar abr mai jun jul ago set out nov dez",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    # Dutch
    "jan feb mrt apr mei jun jul aug sep okt nov dec",
    "januari februari maart april mei juni juli augustus september oktober november december",
    # Swedish
    "jan feb mar apr maj jun jul aug sep okt nov dec",
    "januari februari mars april maj juni juli augusti september oktober november december",
    # Polish
    "sty lut mar kwi maj cze lip sie wrz paź lis gru",
    "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
    # Czech
    "led úno bře dub kvě čvn čvc srp zář říj lis pro",
    "ledna února března dubna května června července srpna září října listopadu prosince",
    # Russian
    "янв фев мар апр мая июн июл авг сен окт ноя дек",
    "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "янв февр март апр май июнь июль авг сент окт нояб дек",
    # Turkish
    "oca şub mar nis may haz tem ağu eyl eki kas ara",
    "ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık",  # noqa: RUF001
)


def _by_name() -> dict[str, int]:
    names = {name: place % 12 + 1 for place, name in enumerate(ENGLISH_MONTHS)}
    for language in _LANGUAGES:
        names |= {name: number for number, name in enumerate(language.split(), 1)}
    return names


MONTH_NAMES: Final[dict[str, int]] = _by_name()
"""The months of names, English ones first. No name is of two months."""


def any_name(names: Iterable[str]) -> str:
    """Return an expression for names in any case, the longest first, that RE2 and Python read alike."""
    longest = sorted(names, key=len, reverse=True)
    return "(?i:" + "|".join("".join(map(_either_case, name)) for name in longest) + ")"


def _either_case(letter: str) -> str:
    return letter if letter.isascii() else f"(?:{letter}|{letter.upper()})"


ZONES: Final[dict[str, int]] = {
    "UTC": 0, "GMT": 0, "WET": 0, "WEST": 60, "CET": 60, "CEST": 120, "MEZ": 60, "MESZ": 120, "EET": 120,
    "EEST": 180, "SAST": 120, "PKT": 300, "WIB": 420, "SGT": 480, "HKT": 480, "JST": 540, "KST": 540,
    "AWST": 480, "ACST": 570, "ACDT": 630, "AEST": 600, "AEDT": 660, "NZST": 720, "NZDT": 780, "EDT": -240,
    "MDT": -360, "PDT": -420, "AKST": -540, "AKDT": -480, "HST": -600, "NST": -210, "NDT": -150, "BRT": -180,
}  # fmt: skip
"""Minutes east of UTC."""

AMBIGUOUS_ZONES: Final = (
    "EST", "CST", "CDT", "MST", "PST", "AST", "ADT", "IST", "BST", "MSK", "SST", "GST", "ECT", "AMT", "LMT",
    "WST", "ART", "COT",
)  # fmt: skip
"""Those that mean several offsets: CST is that of Chicago and of Shanghai, MSK was another one in 2012."""

UNREAD_ZONES: Final = (
    "ACT", "ACWST", "AET", "AFT", "ALMT", "ANAT", "AQTT", "AZOST", "AZOT", "AZT", "BDT", "BNT", "BOT",
    "BRST", "BTT", "CAT", "CHADT", "CHAST", "CHOT", "CHST", "CKT", "CLST", "CLT", "CVT", "CXT", "DAVT",
    "EASST", "EAT", "EGST", "EGT", "EST5EDT", "CST6CDT", "MST7MDT", "PST8PDT", "FET", "FJST", "FJT",
    "FKST", "FKT", "FNT", "GALT", "GAMT", "GFT", "GILT", "GYT", "HADT", "HAST", "HDT", "HOVT", "ICT",
    "IDT", "IOT", "IRDT", "IRKST", "IRKT", "IRST", "KGT", "KOST", "KRAST", "KRAT", "KUYT", "LHDT",
    "LHST", "LINT", "MAGST", "MAGT", "MAWT", "MEST", "MET", "MHT", "MMT", "MSD", "MUT", "MVT", "MYT",
    "NCT", "NFT", "NOVST", "NOVT", "NPT", "NRT", "NUT", "NZT", "OMSST", "OMST", "ORAT", "PET", "PETT",
    "PGT", "PHOT", "PHT", "PHST", "PMDT", "PMST", "PWT", "PYST", "PYT", "QYZT", "ROTT", "SAKT", "SAMT",
    "SBT", "SCT", "SRET", "SRT", "SYOT", "TAHT", "TFT", "TJT", "TKT", "TLT", "TMT", "TRT", "TVT", "ULAT",
    "UYST", "UYT", "UZT", "VET", "VLAST", "VLAT", "VOST", "VUT", "WAKT", "WAST", "WAT", "WFT", "WGST",
    "WGT", "WIT", "WITA", "WT", "YAKST", "YAKT", "YEKST", "YEKT",
)  # fmt: skip
"""Those that no format reads: words, and those that have had several offsets. GET is a
verb of HTTP here."""
