"""What several processes compare before they train together: all that decides where training ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from cavity.engine.distributed import digest_of
from cavity.training.batches import Batches

if TYPE_CHECKING:
    from cavity.training.loop import Source
    from cavity.training.plans import Plan
    from cavity.training.trainer import Trainer

#: Fractions of training at which schedules are compared.
PLACES = [number / 8 for number in range(8)]


def facts(trainer: Trainer, source: Source, epochs: int, evaluate_every: int) -> dict[str, object]:
    """The facts of a fit by name: settings as they are, tensors as digests. An iterable is not looked into."""
    method, sites = trainer.method, trainer.method.sites
    position = torch.tensor([trainer.steps, trainer.epoch, trainer.batch, trainer.order_seed])
    found: dict[str, object] = {
        "epochs": epochs,
        "evaluate_every": evaluate_every,
        "algorithm": (method.algorithm.name, vars(method.algorithm)),
        **numbers(trainer.plan),
        "inner_iterations": method.iterations,
        "tolerance": method.tolerance,
        "reinforcement": trainer.reinforcement,
        "reinforcement_step": method.reinforcement_step,
        "focusing": trainer.focusing,
        "accuracy": [choice.accuracy for choice in trainer.runner.choices],
        "weights": [(site.prior.name, vars(site.prior)) for site in sites],
        "channels": [(site.channel.name, vars(site.channel)) for site in sites],
        "a network": digest_of(trainer.net.state_dict().values()),
        "a position in training": digest_of([trainer.generator.get_state(), position]),
    }
    if isinstance(source, Batches):
        found |= {
            "batch_size": source.batch_size,
            "training inputs": digest_of([source.x]),
            "training labels": digest_of([source.y]),
        }
    return found


def numbers(plan: Plan) -> dict[str, object]:
    """The settings of a plan by name; of a schedule, which may be any function, some of its values."""
    values: dict[str, object] = {"plan": type(plan).__name__, **vars(plan)}
    schedule = values.get("schedule")
    if callable(schedule):
        values["schedule"] = [schedule(t) for t in PLACES]
    return values
