"""The peer of the engine's speed benchmark: the same jobs by PyTorch and transformers on the CPU.

Started by the benchmark as `peer.py --serve torch|torch-bf16 JOB --threads N`; repeats the job once for
each line on standard input and answers with tokens and seconds.
"""

import sys
import time

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

SIZES = {
    "a": dict(vocab_size=512, hidden_size=128, num_hidden_layers=4, num_attention_heads=4,
              num_key_value_heads=2, intermediate_size=384),
    "b": dict(vocab_size=8192, hidden_size=512, num_hidden_layers=8, num_attention_heads=8,
              num_key_value_heads=4, intermediate_size=1408),
}
ROWS = {"a": 16, "b": 8}
ROW_TOKENS, PROMPT, RESPONSE = 256, 64, 128


def job(candidate, name):
    task, size = name.split("-")
    torch.manual_seed(1)
    config = Qwen2Config(tie_word_embeddings=True, attn_implementation="sdpa", bos_token_id=None,
                         eos_token_id=None, pad_token_id=0, **SIZES[size])
    dtype = torch.bfloat16 if candidate == "torch-bf16" else torch.float32
    model = Qwen2ForCausalLM(config).to(dtype)
    if task.startswith("decode"):
        count = int(task.removeprefix("decode"))
        prompts = torch.randint(config.vocab_size, (count, PROMPT))
        mask = torch.ones_like(prompts)
        model.eval()

        def run():
            with torch.no_grad():
                out = model.generate(prompts, attention_mask=mask, do_sample=False,
                                     min_new_tokens=RESPONSE, max_new_tokens=RESPONSE)
            return (out.shape[1] - PROMPT) * count
        return run
    rows = torch.randint(config.vocab_size, (ROWS[size], ROW_TOKENS))
    if task == "score":
        model.eval()

        def run():
            with torch.no_grad():
                logits = model(rows, use_cache=False).logits[:, :-1].float()
                logits.log_softmax(-1).gather(-1, rows[:, 1:, None])
            return rows.numel()
        return run
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.0, fused=True)

    def run():
        model(rows, labels=rows, use_cache=False).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return rows.numel()
    return run


def main():
    candidate, name, threads = sys.argv[2], sys.argv[3], int(sys.argv[5])
    torch.set_num_threads(threads)
    run = job(candidate, name)
    run()
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        tokens = run()
        print(tokens, time.perf_counter() - start, flush=True)


main()
