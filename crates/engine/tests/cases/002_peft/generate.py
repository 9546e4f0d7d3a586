"""Makes this case with peft: adapters over the model of ../000_qwen2_parity, each of another kind.

Run in an environment with torch, transformers and peft:

    python generate.py              writes the case
    python generate.py DIRECTORY    checks that an adapter saved by the engine loads over the same model and
                                    scores the case's tokens; writes DIRECTORY/scores.json
"""

import json
import pathlib
import shutil
import sys
import warnings

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

HERE = pathlib.Path(__file__).parent
BASE = HERE.parent / "000_qwen2_parity" / "model"
ROWS = [[5, 17, 3, 60, 41, 8, 8, 22, 0, 33, 12], [1, 2, 3, 4, 5, 6, 7]]
# Tokens that carry loss, by row: the last ones.
MASKED = [6, 4]
CASES = {
    "all_linear": (
        dict(r=3, lora_alpha=6, lora_dropout=0.1, target_modules="all-linear"), torch.float32),
    "rslora": (
        dict(r=4, lora_alpha=3, use_rslora=True, target_modules=["q_proj", "v_proj"]), torch.float32),
    # Half precision, a pattern, one layer of two.
    "one_layer": (
        dict(r=2, lora_alpha=2, target_modules=r"model\.layers\.1\..*\.(up_proj|down_proj|o_proj)"),
        torch.bfloat16),
}


def base():
    return AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32).eval()


def masked_logprobs(model, row, masked):
    logits = model(torch.tensor([row])).logits[0]
    logprobs = torch.log_softmax(logits[:-1], dim=-1)
    return logprobs.gather(1, torch.tensor(row[1:])[:, None])[-masked:, 0]


def logprobs(model):
    return [masked_logprobs(model, row, masked) for row, masked in zip(ROWS, MASKED)]


def write_case():
    for seed, (name, (settings, dtype)) in enumerate(CASES.items()):
        torch.manual_seed(seed)
        model = get_peft_model(base(), LoraConfig(task_type="CAUSAL_LM", **settings)).eval()
        with torch.no_grad():
            for parameter_name, parameter in model.named_parameters():
                if "lora_" in parameter_name:
                    parameter.normal_(0.0, 0.3)
                    parameter.copy_(parameter.to(dtype))
        directory = HERE / name
        shutil.rmtree(directory, ignore_errors=True)
        if dtype != torch.float32:
            model = model.to(dtype)
        model.save_pretrained(directory)
        (directory / "README.md").unlink()
        config = json.loads((directory / "adapter_config.json").read_text())
        config["base_model_name_or_path"] = "../../000_qwen2_parity/model"
        (directory / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")
        # What is stored, over the model in single precision, is what is compared.
        model = PeftModel.from_pretrained(base(), directory, is_trainable=True).float().eval()
        found = logprobs(model)
        loss = -torch.cat(found).mean()
        loss.backward()
        gradients = {
            name.replace(".default", ""): parameter.grad.contiguous()
            for name, parameter in model.named_parameters() if "lora_" in name
        }
        save_file(gradients, directory / "gradients.safetensors")
        merged = model.merge_and_unload()
        expected = {
            "rows": ROWS, "masked": MASKED, "loss": loss.item(),
            "logprobs": [row.tolist() for row in found],
            "merged_q_proj_row": merged.model.layers[1].self_attn.q_proj.weight[5].tolist(),
            "merged_o_proj_row": merged.model.layers[1].self_attn.o_proj.weight[5].tolist(),
        }
        (directory / "expected.json").write_text(json.dumps(expected) + "\n")


def check_saved(directory):
    with warnings.catch_warnings():
        # peft warns of keys that it does not know.
        warnings.simplefilter("error", UserWarning)
        model = PeftModel.from_pretrained(base(), directory).eval()
    with torch.no_grad():
        scores = [row.tolist() for row in logprobs(model)]
    (pathlib.Path(directory) / "scores.json").write_text(json.dumps(scores) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        check_saved(sys.argv[1])
    else:
        write_case()
