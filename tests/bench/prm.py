"""Speed of implicit-PRM training, sampling and scoring: ``make bench METHOD=prm``.

CPU seconds of one thread. Peers run in the same process and in turn with ours, so that a machine that slows down slows
both: TRL's DPOTrainer, transformers' generate, and scoring by whole tables of logits. Writes
``reports/prm/benchmark.json``; a bound that is missed is printed as MISSED, exit 1.
"""

import copy
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice

from tests.bench.measure import cpu_seconds, memory_mb, pipeline, reset_peak, row, write

import numpy as np  # isort: skip
import torch  # isort: skip

from tasks.lm.logprobs import response_log_probs, segment_sum, token_log_probs
from tasks.lm.sampling import sample
from tasks.lm.tiny import build_model, build_tokenizer
from tasks.lm.tokens import encode_prompt, encode_response
from tasks.prm import chain
from tasks.prm.params import Train
from tasks.prm.training import Labelled, fit, plan
from tasks.stage import random_generator

TINY = {"hidden": 96, "layers": 3, "heads": 3, "intermediate": 256, "seed": 1}
PAIRS, BATCH, ROUNDS = 256, 16, 3
BETA, RATE = 0.1, 5e-4


def tiny():
    tokenizer = build_tokenizer(chain.SYMBOLS)
    return tokenizer, build_model(tokenizer, **TINY)


def solutions(n: int) -> list[tuple[str, str]]:
    return list(islice(chain.worked(3, random_generator(0, "bench")), n))


def in_turn(*functions: Callable[[], float]) -> list[float]:
    """The smallest of some rounds for each, the functions one after the other in every round."""
    return [min(values) for values in zip(*[[f() for f in functions] for _ in range(ROUNDS)], strict=True)]


def pairs() -> tuple[list[tuple[str, str, str]], Labelled]:
    """A worked solution and one with a wrong last digit to each of 256 prompts, as texts and as token ids."""
    tokenizer, model = tiny()
    texts = [(p, s, s[:-1] + str((int(s[-1]) + 1) % 10)) for p, s in solutions(PAIRS)]
    prompts = [encode_prompt(tokenizer, p) for p, _, _ in texts for _ in range(2)]
    responses = [encode_response(tokenizer, r) for _, right, wrong in texts for r in (right, wrong)]
    problems = np.array([f"p{i:04}" for i in range(PAIRS) for _ in range(2)], dtype=object)
    correct = np.tile([True, False], PAIRS)
    return texts, Labelled(problems, prompts, responses, correct, token_log_probs(model, prompts, responses))


def beside_trl() -> list[dict]:
    """One epoch of DPO, 16 pairs a step, with TRL's trainer and with ours; tokens of prompts and responses, no padding."""
    texts, data = pairs()
    n_tokens = sum(map(len, data.prompts)) + sum(map(len, data.responses))
    parameters = Train(batch=2 * BATCH, learning_rate=RATE)
    first: dict[str, float] = {}

    def ours() -> float:
        _, model = tiny()
        begin = time.process_time()
        batches = plan("dpo", data, parameters, np.random.default_rng(0))
        steps = list(fit(model, "dpo", data, batches, BETA, parameters))
        first["ours"], first["our last"] = steps[0].loss, np.mean([s.loss for s in steps[-4:]])
        return time.process_time() - begin

    def reference() -> float:
        _, model = tiny()
        begin = time.process_time()
        token_log_probs(model, data.prompts, data.responses)
        return time.process_time() - begin

    def trl(precompute: bool) -> Callable[[], float]:
        def run() -> float:
            trainer, log = trl_trainer(texts, precompute)
            begin = time.process_time()
            trainer.train()
            seconds = time.process_time() - begin
            first["trl"], first["trl last"] = log[0], np.mean(log[-4:])
            return seconds

        return run

    own, cached, theirs, precomputed = in_turn(ours, reference, trl(False), trl(True))
    # TRL's prompts lack the begin token that ours have
    theirs_tokens = n_tokens - len(data.prompts)
    for who in ("ours", "trl"):
        assert abs(first[who] - np.log(2)) < 1e-3, first  # both begin where nothing is known
    rate, peer = n_tokens / own, theirs_tokens / theirs
    return [
        row("DPO on pairs of the tiny model, 16 pairs a step, reference cached", rate, "tok/s"),
        row("  TRL's DPOTrainer, train() alone, reference in the step", peer, "tok/s"),
        row("  ours / TRL's", rate / peer, "×", -1.8),
        row("  the same, our pass of the reference counted too", n_tokens / (own + cached) / peer, "×"),
        row("  ours / TRL's with precompute_ref_log_probs", rate / (theirs_tokens / precomputed), "×"),
        row("  last losses, ours − TRL's (other orders of the pairs)", first["our last"] - first["trl last"], "nats"),
    ]


def trl_trainer(texts: list[tuple[str, str, str]], precompute: bool):
    """TRL's trainer as its documentation has it, without evaluation, checkpoints, reports and progress bars."""
    from datasets import Dataset
    from datasets.utils import disable_progress_bars
    from transformers import PrinterCallback, TrainerCallback
    from trl import DPOConfig, DPOTrainer

    disable_progress_bars()
    log: list[float] = []

    class Losses(TrainerCallback):
        def on_log(self, args, state, control, logs=None, **more):
            if logs and "loss" in logs:
                log.append(float(logs["loss"]))

    tokenizer, model = tiny()
    folder = tempfile.mkdtemp()
    model.save_pretrained(folder)  # TRL loads a model by its name where it makes the reference itself
    model.config._name_or_path = folder
    arguments = DPOConfig(
        output_dir=folder,
        per_device_train_batch_size=BATCH,
        num_train_epochs=1,
        learning_rate=RATE,
        beta=BETA,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        precompute_ref_log_probs=precompute,
        report_to=[],
        save_strategy="no",
        logging_steps=1,
        disable_tqdm=True,
    )
    rows = Dataset.from_list([{"prompt": p, "chosen": right, "rejected": wrong} for p, right, wrong in texts])
    trainer = DPOTrainer(
        model=model,
        ref_model=copy.deepcopy(model),
        args=arguments,
        train_dataset=rows,
        processing_class=tokenizer,
        callbacks=[Losses()],
    )
    trainer.remove_callback(PrinterCallback)
    return trainer, log


def losses() -> list[dict]:
    """CPU of a pass over the same responses by pairs, 8 pairs a problem, beside one by one."""
    tokenizer, model = tiny()
    problems = solutions(100)
    texts = [(p, s if j % 2 else s[:-1] + "?") for p, s in problems for j in range(8)]
    prompts = [encode_prompt(tokenizer, p) for p, _ in texts]
    responses = [encode_response(tokenizer, r) for _, r in texts]
    ids = np.array([f"p{i:04}" for i in range(100) for _ in range(8)], dtype=object)
    correct = np.tile([False, True], 400)
    data = Labelled(ids, prompts, responses, correct, token_log_probs(model, prompts, responses))

    def epoch(loss: str) -> Callable[[], float]:
        def run() -> float:
            _, fresh = tiny()
            parameters = Train(max_pairs=8)
            begin = time.process_time()
            batches = plan(loss, data, parameters, np.random.default_rng(0))
            list(fit(fresh, loss, data, batches, 1.0, parameters))
            return (time.process_time() - begin) / sum(len(batch.rows) for batch in batches)

        return run

    ce, dpo, nca = in_turn(epoch("ce"), epoch("dpo"), epoch("nca"))
    return [
        row("CPU a response: dpo with 8 pairs a problem / ce", dpo / ce, "×", 1.25),
        row("CPU a response: nca with 8 pairs a problem / ce", nca / ce, "×", 1.25),
    ]


def sampling() -> list[dict]:
    """1024 responses of 52 tokens at most, untrained weights: nearly none ends early. Beside transformers' generate."""
    tokenizer, model = tiny()
    prompts = [encode_prompt(tokenizer, p) for p, _ in solutions(128)]
    keys = [str(i) for i in range(128)]
    found: dict[str, int] = {}

    def ours() -> float:
        begin = time.process_time()
        drawn = sample(model, prompts, keys, 8, end=[tokenizer.eos_token_id], max_new_tokens=52, seed=0)
        found["ours"] = sum(len(s.tokens) for samples in drawn for s in samples)
        return (time.process_time() - begin) / found["ours"]

    def generate() -> float:
        begin = time.process_time()
        tokenizer.padding_side = "left"
        batch = tokenizer.pad({"input_ids": [p for p in prompts for _ in range(8)]}, return_tensors="pt")
        with torch.inference_mode():
            out = model.generate(**batch, do_sample=True, max_new_tokens=52, pad_token_id=tokenizer.pad_token_id)
        tokens = int((out[:, batch["input_ids"].shape[1] :] != tokenizer.pad_token_id).sum())
        return (time.process_time() - begin) / tokens

    own, theirs = in_turn(ours, generate)
    return [
        row("sampling from the tiny model, 1024 responses at a time", 1 / own, "tok/s", -9000),
        row("  ours / transformers' generate", theirs / own, "×"),
    ]


def scoring() -> list[dict]:
    """Token log-probabilities, 16 responses a prompt, beside whole tables of logits of prompt and response."""
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer, model = tiny()
    texts = [(p, s) for p, s in solutions(64) for _ in range(16)]
    short = [encode_prompt(tokenizer, p) for p, _ in texts], [encode_response(tokenizer, s) for _, s in texts]
    torch.manual_seed(0)
    large = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=49_152,
            hidden_size=256,
            intermediate_size=512,
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=4,
        )
    ).eval()
    generator = np.random.default_rng(0)
    prompts = [generator.integers(3, 49_152, 256).tolist() for _ in range(2)]
    long = [p for p in prompts for _ in range(8)], [generator.integers(3, 49_152, 64).tolist() for _ in range(16)]
    rows = []
    for name, network, data in (("tiny model", model, short), ("49,152 words, prompts of 256 tokens", large, long)):
        plain, own = _beside_plain(network, *data)
        n_tokens = sum(map(len, data[1]))
        rows.append(row(f"scoring responses, {name}", n_tokens / own, "tok/s"))
        rows.append(row("  ours / whole tables of logits", plain / own, "×", -1 if network is large else None))
    return rows


def _beside_plain(model, prompts: list, responses: list) -> tuple[float, float]:
    def plain() -> float:
        begin = time.process_time()
        with torch.inference_mode():
            for first in range(0, len(prompts), 16):
                part = [p + r for p, r in zip(prompts[first : first + 16], responses[first : first + 16], strict=True)]
                width = max(map(len, part))
                ids = torch.tensor([ids + [0] * (width - len(ids)) for ids in part])
                model(ids).logits.log_softmax(-1)[:, :-1].gather(-1, ids[:, 1:, None])
        return time.process_time() - begin

    def ours() -> float:
        begin = time.process_time()
        token_log_probs(model, prompts, responses)
        return time.process_time() - begin

    return tuple(in_turn(plain, ours))


def memory() -> list[dict]:
    """49,152 words × 32 responses × 256 tokens, of which the logits alone are 1.6 GB."""
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=49_152, num_key_value_heads=2, **shape))
    prompts, responses = [[1, 2, 3]] * 32, [[5] * 256] * 32
    rows = []

    def train() -> None:
        values = response_log_probs(model, prompts, responses)
        segment_sum(values, [256] * 32).sum().backward()

    for name, run in (("scoring", lambda: token_log_probs(model, prompts, responses)), ("a training step", train)):
        before = memory_mb("VmRSS")
        reset_peak()
        run()
        rows.append(row(f"memory of {name}, 49,152 × 32 × 256", memory_mb("VmHWM") - before, "MB", 1000))
    return rows


def main() -> None:
    torch.set_num_threads(1)
    cpu_seconds(lambda: tiny(), runs=1)  # imports of transformers' parts
    rows = [*memory(), *sampling(), *scoring(), *losses(), *beside_trl()]
    if "--quick" not in sys.argv:
        rows += pipeline("prm", 600)
    write("prm", rows)


if __name__ == "__main__":
    main()
