"""Implicit process reward models: step rewards from outcome labels (Yuan et al., ICML 2025, arXiv 2412.01981)."""
