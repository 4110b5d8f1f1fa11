"""What training frameworks need beside a Loader. Nothing here is imported by `import millrace`.

Invariant: where a run resumes is the loader's own state, never a count of batches to skip.

Lightning needs nothing: it saves and restores the state of a loader that fit() gets.
"""

from __future__ import annotations

import json
import os
from typing import Any

from transformers import TrainerCallback

from ._loader import Loader

__all__ = ["ResumeCallback"]

_NAME = "millrace_loader.json"


class ResumeCallback(TrainerCallback):  # type: ignore[misc]
    """Keeps a loader's state in the checkpoints of Hugging Face's Trainer, and resumes from there.

    Args:
        loader: what the Trainer's get_train_dataloader() returns.

    It turns `ignore_data_skip` on: the Trainer would otherwise read and drop the batches of the epoch that were seen, which
    works with torch's DataLoader only. On several ranks all of them read the state that the first one wrote.

    >>> callback = ResumeCallback(loader)                           # doctest: +SKIP
    >>> trainer = LoaderTrainer(train=loader, callbacks=[callback]) # doctest: +SKIP
    >>> trainer.train(resume_from_checkpoint=True)                  # doctest: +SKIP
    """

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    @staticmethod
    def _place(args: Any, state: Any) -> str:
        return os.path.join(args.output_dir, f"checkpoint-{state.global_step}", _NAME)

    def on_init_end(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
        args.ignore_data_skip = True

    def on_save(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
        if state.is_world_process_zero:
            with open(self._place(args, state), "w") as file:
                json.dump(self._loader.state_dict(), file)

    def on_train_begin(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
        if state.global_step:
            with open(self._place(args, state)) as file:
                self._loader.load_state_dict(json.load(file))
