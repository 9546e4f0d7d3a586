"""Reads an exported batch as verl's DataProto, sends it through what verl does to batches, and says what verl
makes of it: `check.py FOLDER` prints one JSON object."""
# The three lines of docs/verl.md, which the test compares:
# begin
import json, sys, numpy, verl; from safetensors.torch import load_file
def read(folder): return load_file(f"{folder}/batch.safetensors"), json.load(open(f"{folder}/batch.json"))
def data_proto(tensors, side): return verl.DataProto.from_dict(tensors, {name: numpy.array(column, dtype=object) for name, column in side["non_tensors"].items()}, side["meta_info"])
# end
import torch
from verl import DataProto
from verl.trainer.ppo import core_algos
from verl.utils.model import compute_position_id_with_mask

tensors, side = read(sys.argv[1])
batch = data_proto(tensors, side)
rewards = {
    (event["episode_id"], event["step_id"]): event["step_reward"]
    for event in batch.meta_info["step_rewards_ext"]
    if event["step_id"] is not None
}


def rows(data):
    """Each row by its key: what was paid for it, its own tokens and mask, its advantage."""
    told = []
    for index in range(len(data)):
        row = data[index]
        mask = row.batch["response_mask"].bool()
        key = (row.non_tensor_batch["episode_id"], row.non_tensor_batch["step_id"])
        told.append(
            {
                "row_key": row.non_tensor_batch["row_key"],
                "step_reward": rewards.get(key),
                "sampled": row.batch["responses"][mask].tolist(),
                "advantages": row.batch["advantages"][mask].tolist(),
                "is_pad": bool(row.batch["is_pad"]),
            }
        )
    return told


def copied():
    return data_proto(*read(sys.argv[1]))


reordered = copied()
reordered.reorder(torch.arange(len(batch)).flip(0))
repeated = batch.repeat(repeat_times=2, interleave=True)
halves = batch.chunk(2)
joined = DataProto.concat(halves[::-1])
for piece in [reordered, repeated, *halves, joined]:
    assert piece.meta_info["step_rewards_ext"] == side["meta_info"]["step_rewards_ext"]

attention = batch.batch["attention_mask"]
positions = compute_position_id_with_mask(attention) * attention
assert torch.equal(positions, batch.batch["position_ids"]), "positions count attended tokens"
whole = torch.cat([batch.batch["prompts"], batch.batch["responses"]], dim=-1)
assert torch.equal(whole, batch.batch["input_ids"]), "prompts and responses make input_ids"
mask = batch.batch["response_mask"]
one_row_each = numpy.array(
    [key is not None and key.endswith("/0") for key in batch.non_tensor_batch["row_key"]]
)
first = batch[numpy.flatnonzero(one_row_each)]
advantages, _ = core_algos.compute_grpo_outcome_advantage(
    token_level_rewards=first.batch["token_level_scores"],
    response_mask=first.batch["response_mask"],
    index=first.non_tensor_batch["uid"],
)
log_prob = batch.batch["rollout_log_probs"] + 0.1 * mask
loss = core_algos.agg_loss(
    -batch.batch["advantages"] * torch.exp(log_prob - batch.batch["rollout_log_probs"]),
    mask,
    "seq-mean-token-mean",
)
print(
    json.dumps(
        {
            "rows": rows(batch),
            "reordered": rows(reordered),
            "repeated": rows(repeated),
            "joined": rows(joined),
            "grpo_of_first_steps": [
                float(value[m.bool()][0]) for value, m in zip(advantages, first.batch["response_mask"])
            ],
            "loss": float(loss),
        }
    )
)
