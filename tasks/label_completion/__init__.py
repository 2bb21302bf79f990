"""Crowdsourced label completion: WSLC, LDPLC and instance-level propagation."""
