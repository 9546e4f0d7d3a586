"""Scores rows with the models that `etude model export` wrote, as `transformers` and `peft` load them.

python3 scores.py JOBS: a JSON list of {"directory", "base" or null, "rows", "messages"}; prints a list
with "logprobs" of every row, "dtype", "ids" of the messages and the "stop" tokens.
"""

import json
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, PreTrainedTokenizerFast


def model_of(job):
    if job["base"] is None:
        return AutoModelForCausalLM.from_pretrained(job["directory"], attn_implementation="eager")
    from peft import PeftModel

    base = AutoModelForCausalLM.from_pretrained(job["base"], attn_implementation="eager")
    return PeftModel.from_pretrained(base, job["directory"])


def scored(job):
    model = model_of(job)
    dtype = str(next(model.parameters()).dtype).removeprefix("torch.")
    model = model.float().eval()
    logprobs = []
    for row in job["rows"]:
        with torch.no_grad():
            logits = model(torch.tensor([row])).logits[0]
        of_next = torch.log_softmax(logits[:-1].double(), -1)
        logprobs.append(of_next.gather(1, torch.tensor(row[1:])[:, None])[:, 0].tolist())
    # `transformers` 5 gives every qwen2 model Qwen's own pre-tokenizer, whatever tokenizer.json says.
    kind = PreTrainedTokenizerFast if model.config.model_type == "qwen2" else AutoTokenizer
    tokenizer = kind.from_pretrained(job["directory"])
    ids = tokenizer.apply_chat_template(job["messages"], add_generation_prompt=True, return_dict=True)["input_ids"]
    stop = GenerationConfig.from_pretrained(job["directory"]).eos_token_id
    return {"logprobs": logprobs, "dtype": dtype, "ids": ids, "stop": stop}


def main():
    torch.manual_seed(0)
    jobs = json.load(open(sys.argv[1]))
    print(json.dumps([scored(job) for job in jobs]))


if __name__ == "__main__":
    main()
