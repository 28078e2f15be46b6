"""Lesson cards: JSON files of the package. Cards of a teacher have the same form; the page opens them itself."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from mercer.exceptions import InvalidInputError
from mercer.studio.state import StateError, parse_state

TEXTS, LISTS = ("id", "title", "notes", "question"), ("try", "see")


@cache
def package_lessons() -> list[dict[str, Any]]:
    """The cards of the package, in the order of their file names."""
    folder = files("mercer.studio") / "lessons"
    if not folder.is_dir():
        return []
    names = sorted(one.name for one in folder.iterdir() if one.name.endswith(".json"))
    return [read_card((folder / name).read_text(encoding="utf-8"), name) for name in names]


def read_card(text: str, name: str) -> dict[str, Any]:
    """One card, checked."""
    try:
        card = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{name} is not JSON: {error}.") from None
    if not isinstance(card, dict):
        raise InvalidInputError(f"{name} must be a JSON object with {', '.join((*TEXTS, 'state', *LISTS))}.")
    for key in TEXTS:
        if not isinstance(card.get(key), str):
            raise InvalidInputError(f"{name}: {key!r} must be a text.")
    for key in LISTS:
        if not isinstance(card.get(key), list) or not all(isinstance(one, str) for one in card[key]):
            raise InvalidInputError(f"{name}: {key!r} must be a list of texts.")
    try:
        parse_state(card.get("state", {}))
    except StateError as error:
        raise InvalidInputError(f"{name}: {error}") from None
    return card


def lessons_json() -> dict[str, Any]:
    """The answer to `lessons`."""
    return {"lessons": package_lessons()}
