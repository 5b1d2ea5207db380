"""Train a debater pair: `python train.py`, or `python train.py --config configs/NAME.yaml --env.depth 3 --seed 1`.

Exit status: 0 done (or done before), 1 training diverged, 2 a mistake in the arguments or files, 130 interrupted, 141
nobody reads the output any more (`| head`).
"""

from __future__ import annotations

import os
import signal
import sys

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))  # while we import there is nothing to save or to explain

import time
from collections.abc import Sequence
from pathlib import Path

from agents.configuration import TrainConfig, load_train_config, refuse
from agents.run_folder import RunFolder, quoted
from fbs.command import INTERRUPTED, check_json, give, run_program


def main(arguments: Sequence[str] | None = None) -> int:
    """Train as the arguments say; returns the exit status."""
    started = time.monotonic()
    try:
        config, name = load_train_config(sys.argv[1:] if arguments is None else arguments)
        check_json(config.json, config.problem.path)
        folder = RunFolder(config.run_dir or Path("runs") / f"{name}-seed{config.seed}")
        try:
            return _train(config, folder, started)
        finally:
            folder.release()
    except ValueError as error:
        return refuse("train.py", error)
    except KeyboardInterrupt:
        print("train.py: interrupted before the first iteration", file=sys.stderr)
        return INTERRUPTED


def _train(config: TrainConfig, folder: RunFolder, started: float) -> int:
    checkpoint = folder.open(config)
    out = sys.stderr if config.json == "-" else sys.stdout
    if folder.finished:
        text = f"the run in {folder} is finished; its results are in {folder.summary}"
        give(folder.load_summary() if config.json is not None else None, text, config.json, out)
        return 0
    from agents.training import Diverged, Interrupted, train

    try:
        summary, table = train(config, folder, checkpoint, started)
    except Diverged as error:
        print(f"train.py: training diverged: {error}", file=sys.stderr)
        return 1
    except Interrupted:
        print(f"\nstopped; the state is saved. To continue type: {folder.resume_command}", file=sys.stderr)
        return INTERRUPTED
    text = f"{table}\n\nrun: {folder}\ncurves: tensorboard --logdir {quoted(folder.path)}"
    give(summary, text, config.json, out)
    return 0


if __name__ == "__main__":
    run_program("train.py", main)
