"""Language-model parts that methods share: tokens, log-probabilities, sampling, adapters, loading, a tiny Llama."""
