"""Computation: stages (files in, files out) and the mathematics that they call. Never imports Prefect.

Importing this package settles, before numpy or torch are imported, what must not depend on the machine: one BLAS
thread and one kernel baseline. Parallelism is over blocks (tasks/compute.py) and over stages (flows/engine.py).
Libraries report nothing to anybody.
"""

import os

for _name, _value in {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_CBWR": "AVX2",
    "GX_ANALYTICS_ENABLED": "False",
    "DO_NOT_TRACK": "1",
}.items():
    os.environ.setdefault(_name, _value)
