"""Where a stage computes: the device and the number of threads that its parameters name."""

import torch

from tasks.stage import UserError


def settle(device: str, threads: int) -> str:
    """Set torch's threads and return the device. Raises UserError where there is no such device.

    Matrix products of another number of threads, or of another device, differ in their last bits: both are parameters.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("device cuda: torch finds no GPU here; device: cpu is possible")
    torch.set_num_threads(threads)
    if device == "cuda":  # the full float32, as on CPUs, and the same bits each time
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.deterministic = True
    return device
