"""Makes these cases with transformers: random models whose layers see the most recent tokens alone, or some of
whose layers do, with log-probs, the gradients of their mean, and greedy tokens.

Run in an environment with torch and transformers: python generate.py
"""
import json
import pathlib
import shutil

import torch
from safetensors.torch import save_file
from transformers import (
    MistralConfig, MistralForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM,
)

HERE = pathlib.Path(__file__).parent
SIZES = dict(
    vocab_size=32, hidden_size=16, intermediate_size=24, num_attention_heads=2, num_key_value_heads=1,
    max_position_embeddings=128, bos_token_id=None, eos_token_id=None, pad_token_id=None, rms_norm_eps=1e-5,
)
ROW = [(7 * i * i + 3 * i + 1) % 32 for i in range(90)]
# name: model class, config class, what is special
CASES = {
    "mistral": (MistralForCausalLM, MistralConfig, dict(num_hidden_layers=2, sliding_window=12, head_dim=8)),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config, dict(
        num_hidden_layers=3, use_sliding_window=True, sliding_window=40, max_window_layers=1)),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config, dict(
        num_hidden_layers=3, use_sliding_window=True, sliding_window=2, head_dim=10,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"])),
}


def main():
    for seed, (name, (model_class, config_class, extra)) in enumerate(CASES.items()):
        torch.manual_seed(seed)
        model = model_class(config_class(**SIZES, **extra)).float().eval()
        with torch.no_grad():
            for parameter_name, parameter in model.named_parameters():
                if "norm" in parameter_name:
                    parameter.uniform_(0.5, 1.5)
                else:
                    parameter.normal_(0.0, 0.3)
        directory = HERE / name
        shutil.rmtree(directory, ignore_errors=True)
        model.save_pretrained(directory)
        (directory / "generation_config.json").unlink(missing_ok=True)
        logits = model(torch.tensor([ROW])).logits[0]
        logprobs = torch.log_softmax(logits[:-1], dim=-1).gather(1, torch.tensor(ROW[1:])[:, None])[:, 0]
        logprobs.mean().backward()
        gradients = {key: value.grad.contiguous() for key, value in model.named_parameters()}
        save_file(gradients, directory / "gradients.safetensors")
        with torch.no_grad():
            greedy = model.generate(
                torch.tensor([ROW[:30]]), max_new_tokens=40, do_sample=False, eos_token_id=None
            )[0, 30:].tolist()
        expected = {"row": ROW, "logprobs": logprobs.tolist(), "prompt": 30, "greedy": greedy}
        (directory / "expected.json").write_text(json.dumps(expected) + "\n")


main()
