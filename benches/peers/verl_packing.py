"""verl's side of `cargo bench -p learn --bench pack`: unpadded rows to a DataProto and their GRPO advantages.

`verl_packing.py ROWS.json OUT.json ROUNDS THREADS`. Rows are Python lists when the clock starts, as they are when
servers answer.
"""

import json
import sys
import time

import numpy
import torch
from verl import DataProto
from verl.trainer.ppo import core_algos
from verl.utils.model import compute_position_id_with_mask
from verl.utils.torch_functional import pad_2d_list_to_length

PAD = 0


def padded(prompts, responses, logprobs):
    """By verl's own pad_2d_list_to_length; padding before is padding behind of what is turned around."""
    prompt_ids = pad_2d_list_to_length([ids[::-1] for ids in prompts], PAD).flip(1)
    response_ids = pad_2d_list_to_length(responses, PAD)
    rollout_log_probs = pad_2d_list_to_length(logprobs, 0.0)
    lengths = torch.tensor([len(ids) for ids in prompts])
    width = prompt_ids.shape[1]
    prompt_mask = (torch.arange(width) >= width - lengths[:, None]).long()
    return prompt_ids, prompt_mask, response_ids, rollout_log_probs


def by_pad_sequence(prompts, responses, logprobs):
    """By PyTorch's pad_sequence, which is faster on long rows: the better of the two is reported."""
    pad = torch.nn.utils.rnn.pad_sequence
    prompts = [torch.tensor(ids) for ids in prompts]
    prompt_ids = pad(prompts, batch_first=True, padding_value=PAD, padding_side="left")
    response_ids = pad([torch.tensor(ids) for ids in responses], batch_first=True, padding_value=PAD)
    rollout_log_probs = pad([torch.tensor(values) for values in logprobs], batch_first=True)
    lengths = torch.tensor([len(ids) for ids in prompts])
    width = prompt_ids.shape[1]
    prompt_mask = (torch.arange(width) >= width - lengths[:, None]).long()
    return prompt_ids, prompt_mask, response_ids, rollout_log_probs


def job(rows, pad):
    started = time.perf_counter()
    prompt_ids, prompt_mask, response_ids, rollout_log_probs = pad(
        rows["prompts"], rows["responses"], rows["logprobs"]
    )
    lengths = torch.tensor([len(ids) for ids in rows["responses"]])
    response_mask = (torch.arange(response_ids.shape[1]) < lengths[:, None]).long()
    attention_mask = torch.cat([prompt_mask, response_mask], dim=1)
    scores = torch.zeros_like(rollout_log_probs)
    scores[torch.arange(len(lengths)), lengths - 1] = torch.tensor(rows["rewards"])
    batch = DataProto.from_dict(
        {
            "prompts": prompt_ids,
            "responses": response_ids,
            "input_ids": torch.cat([prompt_ids, response_ids], dim=1),
            "attention_mask": attention_mask,
            "position_ids": compute_position_id_with_mask(attention_mask),
            "response_mask": response_mask,
            "rollout_log_probs": rollout_log_probs,
            "token_level_scores": scores,
        },
        {"uid": numpy.array(rows["uid"], dtype=object)},
    )
    packed = time.perf_counter()
    batch.batch["advantages"], _ = core_algos.compute_grpo_outcome_advantage(
        token_level_rewards=batch.batch["token_level_scores"],
        response_mask=batch.batch["response_mask"],
        index=batch.non_tensor_batch["uid"],
    )
    return packed - started, time.perf_counter() - packed, batch


def main():
    rows_file, out_file, rounds, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    rows = json.load(open(rows_file))
    seconds = {"pad_2d_list_to_length": [], "pad_sequence": []}
    for _ in range(int(rounds) + 1):
        for name, pad in [("pad_2d_list_to_length", padded), ("pad_sequence", by_pad_sequence)]:
            packing, advantage, batch = job(rows, pad)
            seconds[name].append([packing, advantage])
    first = batch.batch["advantages"].gather(1, torch.zeros(len(batch), 1, dtype=torch.long))
    checks = {
        "sum_input_ids": int(batch.batch["input_ids"].sum()),
        "sum_attention": int(batch.batch["attention_mask"].sum()),
        "sum_positions": int((batch.batch["position_ids"] * batch.batch["attention_mask"]).sum()),
        "shape": list(batch.batch["input_ids"].shape),
        "advantages": first[:, 0].tolist(),
    }
    # The first round of each warms up.
    answer = {name: rounds[1:] for name, rounds in seconds.items()}
    json.dump({"seconds": answer, "checks": checks}, open(out_file, "w"))


main()
