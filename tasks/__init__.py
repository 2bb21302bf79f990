"""Computation: stages (files in, files out) and the mathematics that they call. Never imports Prefect."""
