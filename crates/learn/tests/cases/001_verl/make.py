"""Writes cases.json: losses, gradients and advantages as verl's own `core_algos` computes them.

Needs torch and verl 0.9.1 (CPU): `python make.py [SEED] > cases.json`.
"""
import json
import random
import sys

import numpy
import torch
from verl.trainer.ppo import core_algos
from verl.workers.config import ActorConfig, PolicyLossConfig

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 7
random.seed(seed)
torch.manual_seed(seed)
MODES = {"vanilla": "vanilla", "gspo": "gspo", "gmpo": "geo_mean", "cispo": "cispo", "sapo": "sapo", "gpg": "gpg"}


def draw(lengths, spread):
    width = max(lengths)
    mask = torch.tensor([[1.0] * n + [0.0] * (width - n) for n in lengths])
    old = -torch.rand(mask.shape) * 3 - 0.1
    new = old + (torch.rand(mask.shape) - 0.5) * spread
    advantages = torch.randn(len(lengths), 1).expand(mask.shape).clone()
    return mask, old, new, advantages


def rows(tensor, lengths):
    return [[float(value) for value in row[:n]] for row, n in zip(tensor.tolist(), lengths)]


def losses():
    for mode, name in MODES.items():
        for spread in (0.2, 1.5):
            for aggregation, weighed in (
                ("token-mean", False), ("seq-mean-token-sum", False), ("seq-mean-token-mean", False),
                ("seq-mean-token-sum-norm", False), ("seq-mean-token-mean", True),
            ):
                if mode in ("gspo", "gmpo", "sapo") and aggregation != "seq-mean-token-mean":
                    continue
                lengths = [random.randint(1, 9) for _ in range(5)]
                mask, old, new, advantages = draw(lengths, spread)
                new.requires_grad_(True)
                weights = torch.rand(mask.shape) * 2 if weighed else None
                config = ActorConfig(
                    strategy="fsdp", rollout_n=1, ppo_micro_batch_size_per_gpu=1, use_dynamic_bsz=False,
                    clip_ratio=0.2, clip_ratio_low=0.2, clip_ratio_high=0.28, clip_ratio_c=3.0,
                    policy_loss=PolicyLossConfig(loss_mode=name),
                )
                loss, _ = core_algos.get_policy_loss_fn(name)(
                    old_log_prob=old, log_prob=new, advantages=advantages, response_mask=mask,
                    loss_agg_mode=aggregation, config=config,
                    rollout_is_weights=weights,
                )
                loss.backward()
                yield {
                    "loss_mode": mode, "aggregation": aggregation,
                    "old": rows(old, lengths), "new": rows(new.detach(), lengths),
                    "advantages": rows(advantages, lengths),
                    "weights": rows(weights, lengths) if weighed else None,
                    "loss": float(loss), "gradients": rows(new.grad, lengths),
                }


def kl():
    for estimator in ("k1", "abs", "k2", "k3", "k1+", "k3+", "abs+"):
        lengths = [6, 3]
        _, new, reference, _ = draw(lengths, 3.0)
        new.requires_grad_(True)
        values = core_algos.kl_penalty(new, reference, estimator)
        values.sum().backward()
        yield {
            "estimator": estimator, "new": rows(new.detach(), lengths), "reference": rows(reference, lengths),
            "values": rows(values.detach(), lengths), "gradients": rows(new.grad, lengths),
        }


def advantages():
    estimators = {
        "grpo": (core_algos.compute_grpo_outcome_advantage, {"norm_adv_by_std_in_grpo": True}),
        "dr-grpo": (core_algos.compute_grpo_outcome_advantage, {"norm_adv_by_std_in_grpo": False}),
        "grpo-passk": (core_algos.compute_grpo_passk_outcome_advantage, {"config": core_algos.AlgoConfig()}),
        "rloo": (core_algos.compute_rloo_outcome_advantage, {}),
        "opo": (core_algos.compute_opo_outcome_advantage, {}),
        "gpg": (core_algos.compute_gpg_outcome_advantage, {}),
        "reinforce-plus-plus": (core_algos.compute_reinforce_plus_plus_outcome_advantage, {"config": core_algos.AlgoConfig(gamma=1.0)}),
        "reinforce-plus-plus-baseline": (core_algos.compute_reinforce_plus_plus_baseline_outcome_advantage, {}),
    }
    for name, (function, extra) in estimators.items():
        for binary in (True, False):
            sizes = [4, 3, 5]
            groups = [g for g, n in enumerate(sizes) for _ in range(n)]
            lengths = [random.randint(1, 7) for _ in groups]
            mask, *_ = draw(lengths, 1.0)
            scores = [float(random.randint(0, 1)) if binary else random.uniform(-1, 2) for _ in groups]
            rewards = torch.zeros(mask.shape)
            for row, (score, n) in enumerate(zip(scores, lengths)):
                rewards[row, n - 1] = score
            if name != "reinforce-plus-plus":
                extra = {**extra, "index": numpy.array(groups)}
            found, _ = function(token_level_rewards=rewards, response_mask=mask, **extra)
            yield {
                "advantage": name, "groups": sizes, "scores": scores, "lengths": lengths,
                "advantages": [row[0] for row in rows(found, lengths)],
            }


def lines(tables):
    """A case a line, numbers as exact as they were computed."""
    short = json.loads(json.dumps(tables), parse_float=lambda text: float(f"{float(text):.9g}"))
    block = lambda cases: "[\n" + ",\n".join(map(json.dumps, cases)) + "\n]"
    text = lambda cases: block(cases) if isinstance(cases, list) else json.dumps(cases)
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {text(cases)}" for name, cases in short.items()) + "\n}"


print(lines({"losses": list(losses()), "kl": list(kl()), "advantages": list(advantages())}))
