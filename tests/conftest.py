"""One thread for each process of the tests: their networks are small, and the processes share the cores."""

import os

# Read when torch is first imported, here and in every process that a test starts.
os.environ.setdefault("OMP_NUM_THREADS", "1")
