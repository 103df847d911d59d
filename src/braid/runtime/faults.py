"""Reading Spark's errors: what a person can put right, and what is worth another try."""

from __future__ import annotations

import re

from braid.model.errors import BraidError, StorageFull
from braid.runtime.files import MEND

_READ = re.compile(
    r"\[FAILED_READ_FILE[^\]]*\][^\n]*?(?:reading|read)[^\n]*? (file:\S+?|/\S+?)[.\s]"
)
_MALFORMED = re.compile(r"\[MALFORMED_RECORD_IN_PARSING[^\]]*\][^\n]*")
_HEADER = re.compile(r"CSV header does not conform to the schema[\s\S]*?CSV file: (\S+)")


def explain_fault(fault: Exception) -> BraidError | str:
    """The error to show, if trying again cannot help; else the reason in one line."""
    text = str(fault)
    header = _HEADER.search(text)
    if header:
        return BraidError(
            f"{_path(header[1])} has other columns than the files before it",
            hint="give it the same header, or move it out of the folder, and start again",
        )
    read = _READ.search(text)
    malformed = _MALFORMED.search(text)
    if read or malformed:
        what = _path(read[1]) if read else "an input file"
        why = "a row does not fit the columns" if malformed else "it cannot be read"
        return BraidError(
            f"cannot read {what}: {why}",
            hint=MEND,
        )
    if "No space left on device" in text:
        return StorageFull(
            "no space left for Spark's own files",
            hint="free some space, or set spark.local.dir to a larger disk, and start again",
        )
    return _first_line(text)


def _path(uri: str) -> str:
    return re.sub(r"^file:/+", "/", uri)


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:300] if lines else "an unknown fault"
