"""Makes this case with transformers: a random Qwen2 with grouped queries, biases and tied embeddings.

Run in an environment with torch and transformers:

    python generate.py              writes the case
    python generate.py DIRECTORY    checks that a model saved by the engine loads and scores the case's
                                    tokens; writes DIRECTORY/scores.json
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, Qwen2Config, Qwen2ForCausalLM

HERE = pathlib.Path(__file__).parent
ROWS = [[5, 17, 3, 60, 41, 8, 8, 22, 0, 33, 12], [1, 2, 3, 4, 5, 6, 7]]
# Tokens that carry loss, by row: the last ones.
MASKED = [6, 4]


def masked_logprobs(model, row, masked):
    logits = model(torch.tensor([row])).logits[0]
    logprobs = torch.log_softmax(logits[:-1], dim=-1)
    picked = logprobs.gather(1, torch.tensor(row[1:])[:, None])[:, 0]
    return logits, picked[-masked:]


def write_case():
    torch.manual_seed(7)
    # No padding token: transformers gives its embedding no gradient from the input side.
    config = Qwen2Config(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
        tie_word_embeddings=True, rope_theta=5000.0, rms_norm_eps=1e-5,
        bos_token_id=None, eos_token_id=1, pad_token_id=None,
    )
    model = Qwen2ForCausalLM(config).float().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.uniform_(0.5, 1.5)
            else:
                parameter.normal_(0.0, 0.2)
    model.save_pretrained(HERE / "model")
    (HERE / "model" / "generation_config.json").unlink(missing_ok=True)
    total = sum(MASKED)
    loss, logits, logprobs = 0.0, [], []
    for row, masked in zip(ROWS, MASKED):
        row_logits, picked = masked_logprobs(model, row, masked)
        loss = loss - picked.sum() / total
        logits.append(row_logits[-masked - 1 : -1].tolist())
        logprobs.append(picked.tolist())
    loss.backward()
    greedy = model.generate(
        torch.tensor([ROWS[1]]), max_new_tokens=20, do_sample=False, eos_token_id=None
    )[0, len(ROWS[1]) :].tolist()
    expected = {
        "rows": ROWS, "masked": MASKED, "loss": loss.item(), "logits": logits,
        "logprobs": logprobs, "greedy": greedy,
    }
    (HERE / "expected.json").write_text(json.dumps(expected) + "\n")
    gradients = {name: p.grad.contiguous() for name, p in model.named_parameters()}
    save_file(gradients, HERE / "gradients.safetensors")


def check_saved(directory):
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
    with torch.no_grad():
        scores = [
            masked_logprobs(model, row, masked)[1].tolist() for row, masked in zip(ROWS, MASKED)
        ]
    (pathlib.Path(directory) / "scores.json").write_text(json.dumps(scores) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        check_saved(sys.argv[1])
    else:
        write_case()
