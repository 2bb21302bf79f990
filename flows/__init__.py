"""Orchestration: the DVC graph of each method as a Prefect flow.

Importing this package settles what Prefect must know before it is imported itself: its state lives in the
repository's ignored ``.prefect/`` folder and nothing is reported to anybody.
"""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

os.environ.setdefault("PREFECT_HOME", str(ROOT / ".prefect"))
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_RESULTS_DEFAULT_SERIALIZER", "json")  # no pickle, even if results were kept
