"""One meaning per word, and words before their use."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
README = (ROOT / "README.md").read_text()


def words() -> list[str]:
    entries = re.findall(r"^\| \*\*(.*?)\*\* \|", GLOSSARY, re.MULTILINE)
    return [word for entry in entries for word in re.split(r", | / ", entry)]


def test_every_word_of_the_glossary_is_defined_once() -> None:
    assert len(words()) > 60
    assert [word for word, times in Counter(words()).items() if times > 1] == []


@pytest.mark.parametrize("word", ["partition groups", "worker", "spilled", "clean-up"])
def test_the_readme_explains_its_words_before_it_uses_them(word: str) -> None:
    assert README.index(word) == README.index(f"**{word}**") + 2


@pytest.mark.parametrize("word", ["theta_r", "--skew-buffer", "--overflow"])
def test_what_an_option_means_stands_beside_it(word: str) -> None:
    row = README[README.index(word) :].partition("|\n")[0]
    assert len(row) > len(word) + 60
