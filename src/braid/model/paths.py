"""Paths as people write them: local ones, plain or as `file:` URIs.

Object stores and other file systems are not supported. Their URIs would pass for relative paths
(`s3a://bucket/x` for the folder `s3a:` here), so they are refused in this one place.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote_to_bytes

from braid.model.errors import BraidError

_URI = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*):(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_REMOTE = (
    *("abfs", "abfss", "adl", "dbfs", "ftp", "gs", "hdfs", "http", "https", "oss"),
    *("s3", "s3a", "s3n", "sftp", "viewfs", "wasb", "wasbs", "webhdfs"),
)
_LOCAL_HOSTS = ("", "localhost")


def local_path(path: str | os.PathLike[str]) -> Path:
    """The local path that a plain path or a `file:` URI names; other schemes are refused.

    One slash behind the colon makes a URI, for a Path makes it of two. Names may have colons,
    so without a slash only well-known schemes are refused, and not even these if something of
    that name is here.
    A Path of `file://host/x` reads as one of `file:///host/x`, so it is refused as well.

    >>> local_path("file:///data/my%20streams")
    PosixPath('/data/my streams')
    >>> local_path("at 12:30/a")
    PosixPath('at 12:30/a')
    """
    if not isinstance(path, str | os.PathLike):
        raise BraidError(f"{path!r} is no path", hint="give a text or a pathlib.Path")
    text = os.fspath(path)
    if "\0" in text:
        raise BraidError(f"the path {text!r} has a NUL character", hint="give a path without")
    uri = _URI.fullmatch(text)
    if uri is None or not (uri["rest"].startswith("/") or _is_remote(uri["scheme"], text)):
        return Path(text)
    if uri["scheme"].lower() != "file":
        raise BraidError(
            f"{text} is not a local path: Braid does not support {uri['scheme']} yet",
            hint="give a folder of a local or mounted disk, plainly or as file:///…; a local "
            f"folder of that name is ./{text}",
        )
    if not isinstance(path, str):
        raise BraidError(
            f"the Path {text} has lost slashes: it may have named another host",
            hint="give the URI as text, or a Path without a scheme",
        )
    return _path_of_file_uri(text, uri["rest"])


def _is_remote(scheme: str, text: str) -> bool:
    """Whether a scheme without a slash behind it is meant as one."""
    return scheme.lower() in _REMOTE and not os.path.lexists(text.partition("/")[0])


def _path_of_file_uri(uri: str, rest: str) -> Path:
    if "?" in rest or "#" in rest:
        raise BraidError(
            f"{uri} has a query or a fragment, and a file has neither",
            hint="write ? as %3F and # as %23, or give the plain path",
        )
    if rest.startswith("//"):
        host, _, rest = rest[2:].partition("/")
        if host.lower() not in _LOCAL_HOSTS:
            raise BraidError(
                f"{uri} names a file of the host {host!r}",
                hint=f"write file:///{host}/{rest} if {host!r} is a folder of this machine",
            )
    return local_path(os.fsdecode(unquote_to_bytes("/" + rest.lstrip("/"))))
