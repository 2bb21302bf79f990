"""Decision-aware choice of the K sites that will see most events (BPR-K), after Heuton et al., ICML 2025."""
