"""What training frameworks need beside a Loader. Nothing here is imported by `import millrace`.

Invariant: where a run resumes is the loader's own state, never a count of batches to skip.

Lightning needs nothing: it saves and restores the state of a loader that fit() gets.
"""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from ._errors import MisuseError
from ._loader import Loader

__all__ = ["ResumeCallback"]

_NAME = "millrace.Loader"  # in the stateful_callbacks of trainer_state.json


class ResumeCallback(TrainerCallback):  # type: ignore[misc]
    """Keeps a loader's state in the checkpoints of Hugging Face's Trainer, in trainer_state.json, and resumes from there.

    Args:
        loader: what the Trainer's get_train_dataloader() returns.

    It turns `ignore_data_skip` on: the Trainer would otherwise read and drop the batches of the epoch that were seen, which
    works with torch's DataLoader only. On several ranks all of them read the state that the first one wrote.

    Raises:
        MisuseError: when a run resumes from a checkpoint that was written without it.

    >>> callback = ResumeCallback(loader)                           # doctest: +SKIP
    >>> trainer = LoaderTrainer(train=loader, callbacks=[callback]) # doctest: +SKIP
    >>> trainer.train(resume_from_checkpoint=True)                  # doctest: +SKIP
    """

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def on_init_end(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
        args.ignore_data_skip = True

    def on_step_end(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
        state.stateful_callbacks[_NAME] = self._loader.state_dict()

    def on_train_begin(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
        if not state.global_step:
            return
        if _NAME not in state.stateful_callbacks:
            raise MisuseError("the checkpoint has no state of a millrace.Loader: it was written without ResumeCallback")
        self._loader.load_state_dict(state.stateful_callbacks[_NAME])
