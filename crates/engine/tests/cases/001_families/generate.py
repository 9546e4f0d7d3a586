"""Makes these cases with transformers: random models of other families, each with a way to stretch its
context and with its weights stored in another manner.

Run in an environment with torch and transformers: python generate.py
"""
import json
import pathlib
import shutil

import torch
from transformers import (
    LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, Qwen3Config, Qwen3ForCausalLM,
)

HERE = pathlib.Path(__file__).parent
SIZES = dict(
    vocab_size=32, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
    num_key_value_heads=1, max_position_embeddings=64, bos_token_id=None, eos_token_id=None,
    pad_token_id=None, rms_norm_eps=1e-5,
)
ROW = [(7 * i * i + 3 * i + 1) % 32 for i in range(40)]
# name: model class, config class, rope, tied, stored as, bytes in a shard
CASES = {
    "llama3": (LlamaForCausalLM, LlamaConfig, dict(
        rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=32), False, torch.float32, "4KB"),
    "linear": (LlamaForCausalLM, LlamaConfig, dict(
        rope_type="linear", rope_theta=1000.0, factor=4.0), True, torch.float16, "1GB"),
    "yarn": (MistralForCausalLM, MistralConfig, dict(
        rope_type="yarn", rope_theta=1000.0, factor=4.0, original_max_position_embeddings=16),
        False, torch.bfloat16, "3KB"),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config, dict(rope_type="default", rope_theta=1000.0),
        True, torch.float32, "1GB"),
}


def main():
    for seed, (name, (model_class, config_class, rope, tied, dtype, shard)) in enumerate(CASES.items()):
        torch.manual_seed(seed)
        extra = {"sliding_window": None} if config_class is MistralConfig else {}
        if config_class is Qwen3Config:
            extra = {"head_dim": 10}
        config = config_class(**SIZES, rope_parameters=rope, tie_word_embeddings=tied, **extra)
        model = model_class(config).float().eval()
        with torch.no_grad():
            for parameter_name, parameter in model.named_parameters():
                if "norm" in parameter_name:
                    parameter.uniform_(0.5, 1.5)
                else:
                    parameter.normal_(0.0, 0.3)
        model = model.to(dtype)
        directory = HERE / name
        shutil.rmtree(directory, ignore_errors=True)
        model.save_pretrained(directory, max_shard_size=shard)
        (directory / "generation_config.json").unlink(missing_ok=True)
        # The stored, rounded weights in single precision are what is compared.
        model = model_class.from_pretrained(directory, dtype=torch.float32).eval()
        with torch.no_grad():
            logits = model(torch.tensor([ROW])).logits[0]
            logprobs = torch.log_softmax(logits[:-1], dim=-1)
            picked = logprobs.gather(1, torch.tensor(ROW[1:])[:, None])[:, 0].tolist()
            greedy = model.generate(
                torch.tensor([ROW[:9]]), max_new_tokens=20, do_sample=False, eos_token_id=None
            )[0, 9:].tolist()
        expected = {"row": ROW, "logprobs": picked, "prompt": 9, "greedy": greedy}
        (directory / "expected.json").write_text(json.dumps(expected) + "\n")


main()
