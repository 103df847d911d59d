"""What holds for all tests."""

from __future__ import annotations

import os

# Tests start many JVMs that live for a minute: the best compiler would not pay for itself.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
