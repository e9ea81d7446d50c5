"""Render croissant.json: the tables, columns and terms of a dataset as MLCommons Croissant 1.1.

The Hub generates a Croissant file from the Parquet files, but that file does not say what a column means, how
the labels were made or what the data must not be used for. This one does. It refers to Parquet files by
patterns, so its size does not depend on their number. It has the date of the suite, not of the build, so that
the same runs always give the same file. The last part of its version identifies the content.

Format: https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html and its RAI extension.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from arb.core.suite import OFFICIAL
from arb.core.suites.profile import default_title
from dataset_script.card import PAPER_BIBTEX, CardFacts
from dataset_script.schema import CONFIGURATIONS, Column, columns_of

CONFORMS_TO: Final = ("http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0")

_STATIC: Final = json.loads(Path(__file__).with_name("croissant.json").read_text(encoding="utf-8"))
"""The JSON-LD context, which must equal mlcroissant's copy, and the descriptions that all suites share."""

_TYPES: Final = {"string": "Text", "bool": "Boolean", "float64": "Float", "image": "ImageObject"}
"""Croissant's name for each column type. All other types (classes and integers) become Integer."""

_OFFICIAL_TERMS: Final = "https://huggingface.co/datasets/McGill-NLP/agent-reward-bench"
_SPLITS: Final = "splits"


def render_croissant(facts: CardFacts) -> str:
    profile, is_official = facts.profile, facts.suite == OFFICIAL
    title = profile.title or default_title(facts.suite)
    addresses = [address for _, address in profile.links if address.startswith("http")]
    terms = _OFFICIAL_TERMS if is_official else profile.license
    if terms and not terms.startswith("http"):
        terms = f"https://choosealicense.com/licenses/{terms}"
    cited = PAPER_BIBTEX if is_official else profile.citation
    content = hashlib.sha256(" ".join(facts.fingerprints.values()).encode()).hexdigest()
    document = {
        "@context": _STATIC["@context"],
        "@type": "sc:Dataset",
        "conformsTo": list(CONFORMS_TO),
        "name": title + (", blind" if facts.is_blind else ""),
        "description": profile.description
        or f"Runs of {profile.noun} on tasks{profile.place}, for evaluating judges of such runs.",
        **({"license": terms} if terms else {}),
        "version": f"{profile.version or '1.0.0'}+{content[:12]}",
        **({"datePublished": profile.date} if profile.date else {}),
        **({"url": addresses[0]} if addresses else {}),
        **({"citeAs": cited} if cited else {}),
        "inLanguage": "en",
        **_responsible_use(facts),
        "distribution": [_files(name) for name in facts.rows],
        "recordSet": [_splits(facts), *(_record_set(name, facts) for name in facts.rows)],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _responsible_use(facts: CardFacts) -> dict[str, str]:
    asked = " ".join(f"({number}) {question.text}" for number, question in enumerate(facts.questions, 1))
    words = {
        "asked": asked or "did the agent reach the goal?",
        "blind": " Ids hide which agent ran." if facts.is_blind else "",
        "noun": facts.profile.noun,
        "Noun": facts.profile.noun[:1].upper() + facts.profile.noun[1:],
        "place": facts.profile.place,
    }
    return {f"rai:{name}": text.format(**words) for name, text in _STATIC["responsible_use"].items()}


def _files(name: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": f"{name}-files",
        "name": f"{name}-files",
        "encodingFormat": "application/x-parquet",
        "includes": f"data/{name}/*.parquet",
    }


def _splits(facts: CardFacts) -> dict[str, Any]:
    """Return the record set with the names of the splits; the other record sets refer to it."""
    named = dict.fromkeys(split for counts in facts.rows.values() for split in counts)
    return {
        "@type": "cr:RecordSet",
        "@id": _SPLITS,
        "name": _SPLITS,
        "dataType": "cr:Split",
        "key": {"@id": f"{_SPLITS}/name"},
        "field": [{"@type": "cr:Field", "@id": f"{_SPLITS}/name", "name": "name", "dataType": "sc:Text"}],
        "data": [{f"{_SPLITS}/name": split} for split in named],
    }


def _record_set(name: str, facts: CardFacts) -> dict[str, Any]:
    columns = columns_of(name, facts.questions)
    of_file = [] if any(column.name == "split" for column in columns) else [_split_field(name)]
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": f"A row is {CONFIGURATIONS[name].row}.",
        "field": [*of_file, *(_field(name, column, name, column.name) for column in columns)],
    }


def _split_field(name: str) -> dict[str, Any]:
    """Return the field for a row's split, which Croissant reads from the file's name."""
    return {
        "@type": "cr:Field",
        "@id": f"{name}/split",
        "name": "split",
        "description": "dev or test.",
        "dataType": "sc:Text",
        "source": {
            "fileSet": {"@id": f"{name}-files"},
            "extract": {"fileProperty": "fullpath"},
            # mlcroissant applies this to the file's name, and again to the result
            "transform": {"regex": "(?:.*/)?(dev|test)(?:-.*)?"},
        },
        "references": {"field": {"@id": f"{_SPLITS}/name"}},
    }


def _field(parent: str, column: Column, name: str, source: str, inside: str = "") -> dict[str, Any]:
    """Return the Croissant field of a column in table ``name``.

    If the column is a field of structs, ``source`` is the column of structs and ``inside`` the field's name.
    """
    found: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{parent}/{column.name}",
        "name": column.name,
        "description": column.sentence,
    }
    if column.type == "structs":
        fields = [_field(found["@id"], each, name, source, each.name) for each in column.fields]
        return found | {"isArray": True, "arrayShape": "-1", "subField": fields}
    kind = column.item if column.type == "list" else column.type
    if column.type == "list":  # mlcroissant 1.1 reads lists of pictures only with the older key
        found |= {"repeated": True} if kind == "image" else {"isArray": True, "arrayShape": "-1"}
    path = ".".join(filter(None, (inside, "bytes" if kind == "image" else "")))
    transform: Mapping[str, Any] = {"transform": {"jsonPath": path}} if path else {}
    return found | {
        "dataType": f"sc:{_TYPES.get(kind, 'Integer')}",
        "source": {"fileSet": {"@id": f"{name}-files"}, "extract": {"column": source}, **transform},
    }
