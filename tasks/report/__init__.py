"""The report pages: one self-contained HTML page a method, and one that joins them with their stage graphs."""
