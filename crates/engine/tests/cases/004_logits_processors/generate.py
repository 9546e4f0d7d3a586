"""Makes this case with transformers: for random logits and what was said before, the distributions that its own
logits processors leave, built from a GenerationConfig so that their order is its own too.

Run in an environment with torch and transformers: python generate.py
"""
import json
import pathlib

import torch
from transformers import GenerationConfig, Qwen2Config, Qwen2ForCausalLM

HERE = pathlib.Path(__file__).parent
VOCABULARY = 40
SETTINGS = [
    dict(temperature=1.0),
    dict(temperature=0.6),
    dict(temperature=1.7),
    dict(temperature=1.0, top_k=5),
    dict(temperature=0.8, top_k=1),
    dict(temperature=1.0, top_p=0.7),
    dict(temperature=1.3, top_p=0.95),
    dict(temperature=1.0, min_p=0.2),
    dict(temperature=2.0, min_p=0.05),
    dict(temperature=1.0, repetition_penalty=1.4),
    dict(temperature=0.9, repetition_penalty=0.7),
    dict(temperature=1.0, logit_bias={"3": 4.0, "17": -100.0, "20": 1.5}),
    dict(temperature=0.7, top_k=12, top_p=0.8),
    dict(temperature=1.5, top_k=20, top_p=0.9, min_p=0.1),
    dict(temperature=1.2, top_k=9, top_p=0.85, min_p=0.3, repetition_penalty=1.3, logit_bias={"1": 2.0, "5": -3.0}),
]


def main():
    model = Qwen2ForCausalLM(Qwen2Config(
        vocab_size=VOCABULARY, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1,
        num_key_value_heads=1))
    cases = []
    for seed, settings in enumerate(SETTINGS):
        torch.manual_seed(seed)
        logits = (1.5 * torch.randn(VOCABULARY)).tolist()
        prompt, response = [3, 3, 7, 11, 1], [5, 11, 5, 39]
        bias = settings.get("logit_bias", {})
        config = GenerationConfig(
            do_sample=True, temperature=settings["temperature"], top_k=settings.get("top_k", 0),
            top_p=settings.get("top_p", 1.0), min_p=settings.get("min_p"),
            repetition_penalty=settings.get("repetition_penalty", 1.0),
            sequence_bias=[[[int(token)], value] for token, value in bias.items()] or None)
        processors = model._get_logits_processor(config, input_ids_seq_length=len(prompt))
        ids = torch.tensor([prompt + response])
        scores = processors(ids, torch.tensor([logits]))
        probabilities = torch.softmax(scores, dim=-1)[0].tolist()
        cases.append(dict(
            sampling=dict(settings, max_tokens=1), logits=logits, prompt=prompt, response=response,
            processors=[type(processor).__name__ for processor in processors], probabilities=probabilities))
    (HERE / "expected.json").write_text(json.dumps(cases, indent=0) + "\n")


main()
