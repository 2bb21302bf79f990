"""Language-model parts that methods share: tokens, log-probabilities, sampling, adapters, loading, a tiny Llama."""

import warnings

# peft asks every model for an attribute that transformers has renamed; a user can do nothing about it
warnings.filterwarnings("ignore", message="`is_gradient_checkpointing` is deprecated", category=FutureWarning)
