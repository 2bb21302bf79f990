"""SwiftCode (EffiCoder, Huang et al., ICML 2025, arXiv 2410.10209): generate, execute, select the fastest, fine-tune."""
