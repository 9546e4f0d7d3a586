"""Writes cases.json: advantages token by token, value losses, losses by covariance, KL controllers, rollout
correction and balanced partitions as verl itself computes them.

Needs torch and verl 0.9.1 (CPU): `python make.py [SEED] > cases.json`.
"""
import json
import random
import sys

import torch
from verl.trainer.ppo import core_algos, rollout_corr_helper
from verl.utils.seqlen_balancing import karmarkar_karp
from verl.utils.torch_functional import entropy_from_logits
from verl.workers.config import ActorConfig, PolicyLossConfig

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 11
random.seed(seed)
torch.manual_seed(seed)


def masked(lengths):
    width = max(lengths)
    return torch.tensor([[1.0] * n + [0.0] * (width - n) for n in lengths])


def rows(tensor, lengths):
    return [[float(value) for value in row[:n]] for row, n in zip(tensor.tolist(), lengths)]


def by_token():
    for gamma, lam in ((1.0, 1.0), (1.0, 0.95), (0.9, 0.8)):
        lengths = [random.randint(1, 8) for _ in range(6)]
        mask = masked(lengths)
        penalties = (torch.rand(mask.shape) - 0.5) * 0.1 * mask
        values = torch.randn(mask.shape) * mask
        scores = [random.uniform(-1, 2) for _ in lengths]
        rewards = -penalties
        for row, (score, n) in enumerate(zip(scores, lengths)):
            rewards[row, n - 1] += score
        gae, returns = core_algos.compute_gae_advantage_return(rewards, values, mask, gamma, lam)
        plus, _ = core_algos.compute_reinforce_plus_plus_outcome_advantage(
            token_level_rewards=rewards, response_mask=mask, config=core_algos.AlgoConfig(gamma=gamma))
        greedy = torch.tensor([random.uniform(-1, 2) for _ in lengths])
        remax, _ = core_algos.compute_remax_outcome_advantage(rewards, greedy, mask)
        yield {
            "gamma": gamma, "lambda": lam, "rewards": rows(rewards, lengths), "values": rows(values, lengths),
            "gae": rows(gae, lengths), "returns": rows(returns, lengths),
            "reinforce-plus-plus": rows(plus, lengths), "greedy": greedy.tolist(), "remax": rows(remax, lengths),
        }


def over_observations():
    """Responses in several turns: what came in between was not sampled."""
    for gamma, lam in ((1.0, 0.95), (0.9, 0.8)):
        mask = torch.tensor([[float(random.random() < 0.6) for _ in range(9)] for _ in range(5)])
        mask[:, 4] = 1.0
        rewards, values = torch.randn(mask.shape) * mask, torch.randn(mask.shape)
        gae, returns = core_algos.compute_gae_advantage_return(rewards, values, mask, gamma, lam)
        kept = lambda tensor: [[v for v, m in zip(*pair) if m] for pair in zip(tensor.tolist(), mask.tolist())]
        yield {
            "gamma": gamma, "lambda": lam, "rewards": kept(rewards), "values": kept(values),
            "gae": kept(gae), "returns": kept(returns),
        }


def values():
    for clip in (0.2, 0.5):
        lengths = [random.randint(1, 8) for _ in range(5)]
        mask = masked(lengths)
        old, returns = torch.randn(mask.shape), torch.randn(mask.shape)
        new = (old + torch.randn(mask.shape) * 0.5).requires_grad_(True)
        loss, fraction = core_algos.compute_value_loss(new, returns, old, mask, clip)
        loss.backward()
        yield {
            "clip": clip, "old": rows(old, lengths), "new": rows(new.detach(), lengths),
            "returns": rows(returns, lengths), "loss": float(loss), "clipfrac": float(fraction),
            "gradients": rows(new.grad, lengths),
        }


def covariance_losses():
    # Clip-cov draws at random among the candidates: here it takes all of them.
    for mode, ratio in (("clip-cov", 1.0), ("kl-cov", 0.2), ("kl-cov", 0.001)):
        for aggregation in ("token-mean", "seq-mean-token-mean"):
            lengths = [random.randint(2, 9) for _ in range(6)]
            mask = masked(lengths)
            old = -torch.rand(mask.shape) * 3 - 0.1
            new = (old + (torch.rand(mask.shape) - 0.5)).requires_grad_(True)
            advantages = torch.randn(len(lengths), 1).expand(mask.shape).clone()
            name = mode.replace("-", "_")
            config = ActorConfig(
                strategy="fsdp", rollout_n=1, ppo_micro_batch_size_per_gpu=1, use_dynamic_bsz=False,
                clip_ratio=0.2, clip_ratio_low=0.2, clip_ratio_high=0.28,
                policy_loss=PolicyLossConfig(loss_mode=name, clip_cov_ratio=ratio, clip_cov_lb=0.2, clip_cov_ub=0.9,
                                             kl_cov_ratio=ratio, ppo_kl_coef=0.3),
            )
            loss, _ = core_algos.get_policy_loss_fn(name)(
                old_log_prob=old, log_prob=new, advantages=advantages, response_mask=mask,
                loss_agg_mode=aggregation, config=config)
            loss.backward()
            yield {
                "loss_mode": mode, "aggregation": aggregation, "ratio": ratio, "old": rows(old, lengths),
                "new": rows(new.detach(), lengths), "advantages": rows(advantages, lengths), "loss": float(loss),
                "gradients": rows(new.grad, lengths),
            }


def whole_losses():
    """As verl's actor adds them up: the policy loss, less the entropy, and the divergence from the reference."""
    for aggregation in ("token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm"):
        for estimator in ("k1", "k2", "k3", "k3+"):
            lengths = [random.randint(1, 8) for _ in range(5)]
            mask = masked(lengths)
            old = -torch.rand(mask.shape) * 3 - 0.1
            new = (old + (torch.rand(mask.shape) - 0.5)).requires_grad_(True)
            reference = old + (torch.rand(mask.shape) - 0.5)
            entropies = entropy_from_logits(torch.randn(*mask.shape, 11)).requires_grad_(True)
            advantages = torch.randn(len(lengths), 1).expand(mask.shape).clone()
            config = ActorConfig(
                strategy="fsdp", rollout_n=1, ppo_micro_batch_size_per_gpu=1, use_dynamic_bsz=False,
                clip_ratio=0.2, clip_ratio_low=0.2, clip_ratio_high=0.2, clip_ratio_c=1e9,
                policy_loss=PolicyLossConfig(loss_mode="vanilla"))
            loss, _ = core_algos.get_policy_loss_fn("vanilla")(
                old_log_prob=old, log_prob=new, advantages=advantages, response_mask=mask,
                loss_agg_mode=aggregation, config=config)
            loss = loss - 0.05 * core_algos.agg_loss(entropies, mask, aggregation)
            loss = loss + 0.3 * core_algos.agg_loss(
                core_algos.kl_penalty(new, reference, estimator), mask, aggregation)
            loss.backward()
            yield {
                "aggregation": aggregation, "estimator": estimator, "entropy_coefficient": 0.05,
                "kl_coefficient": 0.3, "old": rows(old, lengths), "new": rows(new.detach(), lengths),
                "reference": rows(reference, lengths), "entropies": rows(entropies.detach(), lengths),
                "advantages": rows(advantages, lengths), "loss": float(loss),
                "gradients": rows(new.grad, lengths), "by_entropy": rows(entropies.grad, lengths),
            }


def controllers():
    for current in (0.0, 0.05, 0.1, 0.3, 7.0):
        controller = core_algos.AdaptiveKLController(0.001, 0.1, 10000)
        controller.update(current, 256)
        yield {"kl": current, "episodes": 256, "coefficient": controller.value}


def corrections():
    sampling = [("token", 2.0, None, False), ("token", 1.2, 0.8, False), ("token", 2.0, None, True),
                ("sequence", 2.0, None, False), ("sequence", 3.0, 0.3, False), ("sequence", 2.0, None, True)]
    rejection = ["token_k1", "token_k2", "token_k3", "seq_sum_k1", "seq_sum_k2", "seq_sum_k3", "seq_mean_k1",
                 "seq_mean_k2", "seq_mean_k3", "seq_max_k2", "seq_max_k3"]
    lengths = [random.randint(1, 8) for _ in range(8)]
    mask = masked(lengths)
    rollout = -torch.rand(mask.shape) * 3
    policy = rollout + torch.randn(mask.shape) * 0.4
    ratios = (policy - rollout) * mask
    common = {"log_ratios": rows(ratios, lengths)}
    weights = []
    for level, threshold, lower, normalize in sampling:
        spec = threshold if lower is None else f"{lower}_{threshold}"
        found, told = rollout_corr_helper.compute_rollout_correction_weights(ratios, mask, level, spec, normalize)
        weights.append({
            "level": level, "threshold": threshold, "threshold_lower": lower, "batch_normalize": normalize,
            "weights": rows(found, lengths),
            "effective": None if normalize else told["rollout_is_eff_sample_size"],
        })
    masks = []
    for option in rejection:
        threshold = 1.3 if option.endswith("k1") else 0.08
        kept, _ = rollout_corr_helper.compute_rollout_rejection_mask(ratios, mask, option, str(threshold))
        masks.append({"by": option.replace("_", "-"), "threshold": threshold,
                      "keeps": [[value > 0 for value in row] for row in rows(kept, lengths)]})
    told = rollout_corr_helper.compute_offpolicy_metrics(policy, rollout, mask)
    wanted = ("kl", "k3_kl", "chi2_token", "chi2_seq", "log_ppl_diff")
    return {**common, "weights": weights, "masks": masks, "metrics": {name: told[name] for name in wanted}}


def balanced():
    for rows, parts, equal, most in ((24, 4, True, 9), (24, 3, True, 2000), (17, 4, False, 9), (40, 7, False, 2000), (3, 5, False, 9)):
        costs = [random.randint(1, most) for _ in range(rows)]
        found = karmarkar_karp(costs, parts, equal)
        yield {"costs": costs, "equal_sizes": equal, "parts": sorted(map(sorted, found), key=lambda part: part or [rows])}


def lines(tables):
    """A case a line, numbers as exact as they were computed."""
    short = json.loads(json.dumps(tables), parse_float=lambda text: float(f"{float(text):.9g}"))
    block = lambda cases: "[\n" + ",\n".join(map(json.dumps, cases)) + "\n]"
    text = lambda cases: block(cases) if isinstance(cases, list) else json.dumps(cases)
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {text(cases)}" for name, cases in short.items()) + "\n}"


print(lines({
    "by_token": list(by_token()), "values": list(values()), "covariance_losses": list(covariance_losses()),
    "controllers": list(controllers()), "corrections": corrections(),
    "balanced": list(balanced()), "over_observations": list(over_observations()),
    "whole_losses": list(whole_losses()),
}))
