"""The peer of `cargo bench -p train --bench grpo`: some steps of GRPO by TRL's GRPOTrainer on the CPU.

usage: trl_grpo.py JOB.json ANSWER.json

The job names a checkpoint, prompts and sizes; the answer holds the seconds of every step, in all and by phase,
and for the first steps everything that the driver needs to do them again and compare."""

import json
import logging
import os
import sys
import time
import warnings

job = json.load(open(sys.argv[1], encoding="utf-8"))
os.environ.update(
    OMP_NUM_THREADS=str(job["threads"]),
    MKL_NUM_THREADS=str(job["threads"]),
    HF_HUB_OFFLINE="1",
    TOKENIZERS_PARALLELISM="false",
    TRANSFORMERS_VERBOSITY="error",
    CUDA_VISIBLE_DEVICES="",
)
warnings.filterwarnings("ignore")

import torch  # noqa: E402
import transformers  # noqa: E402
import trl  # noqa: E402
from datasets import Dataset  # noqa: E402
from trl import GRPOConfig, GRPOTrainer  # noqa: E402

logging.disable(logging.WARNING)
torch.set_num_threads(job["threads"])
torch.set_num_interop_threads(1)

# No token has this id, so no response ends before its last token.
NEVER = -1


def spaces(completions, **_):
    """The reward that both sides pay: spaces in the text of the response."""
    return [float(completion[0]["content"].count(" ")) for completion in completions]


class Clock:
    """Seconds by phase of the running step."""

    def __init__(self):
        self.phases, self.steps, self.started = {}, [], (float("nan"), float("nan"))

    def add(self, phase, seconds):
        self.phases[phase] = self.phases.get(phase, 0.0) + seconds

    def wrap(self, owner, name, phase, applies=lambda: True):
        inner = getattr(owner, name)

        def timed(*args, **kwargs):
            if not applies():
                return inner(*args, **kwargs)
            started = time.perf_counter()
            try:
                return inner(*args, **kwargs)
            finally:
                self.add(phase, time.perf_counter() - started)

        setattr(owner, name, timed)

    def step_ended(self):
        now = time.perf_counter(), time.process_time()
        # The first step has no beginning of its own: it is warm-up.
        self.phases["step"], self.phases["processor"] = now[0] - self.started[0], now[1] - self.started[1]
        self.steps.append(self.phases)
        self.phases, self.started = {}, now


class Record(transformers.TrainerCallback):
    """What the first steps saw and did, for the driver's comparison."""

    def __init__(self, clock, keep):
        self.clock, self.keep, self.kept, self.now = clock, keep, [], {"rows": [], "loss": 0.0}

    def watch(self, trainer):
        scored, computed = trainer._get_per_token_logps_and_entropies, trainer._compute_loss
        clipped, last = trainer.accelerator.clip_grad_norm_, []

        def score(*args, **kwargs):
            result = scored(*args, **kwargs)
            last[:] = [result[0].detach()]
            return result

        def compute(model, inputs):
            loss = computed(model, inputs)
            if len(self.kept) < self.keep:
                self.now["loss"] += loss.item()
                self.now["rows"].append((inputs, last[0]))
            return loss

        def clip(*args, **kwargs):
            norm = clipped(*args, **kwargs)
            self.now["grad_norm"] = float(norm)
            return norm

        trainer._get_per_token_logps_and_entropies = score
        trainer._compute_loss = compute
        trainer.accelerator.clip_grad_norm_ = clip

    def on_pre_optimizer_step(self, args, state, control, **_):
        self.began = time.perf_counter()

    def on_optimizer_step(self, args, state, control, **_):
        self.clock.add("optimizer", time.perf_counter() - self.began)

    def on_step_end(self, args, state, control, **_):
        self.clock.step_ended()
        if len(self.kept) < self.keep:
            self.kept.append(self.now)
            self.now = {"rows": [], "loss": 0.0}

    def answer(self):
        return [{**step, "rows": [row for part in step["rows"] for row in rows_of(*part)]} for step in self.kept]


def rows_of(inputs, logprobs):
    for index in range(len(inputs["prompt_ids"])):
        prompt, mask = inputs["prompt_ids"][index], inputs["prompt_mask"][index].bool()
        yield {
            "prompt": prompt[mask].tolist(),
            "response": inputs["completion_ids"][index].tolist(),
            "advantage": inputs["advantages"][index].item(),
            "reference": inputs["ref_per_token_logps"][index].tolist(),
            "logprobs": logprobs[index].tolist(),
        }


def make_trainer(callback):
    rows, micro = job["groups"] * job["group_size"], job["micro_batch_rows"]
    optimizer = job["optimizer"]
    config = GRPOConfig(
        output_dir=job["scratch"],
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        seed=job["seed"],
        max_steps=job["steps"],
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=rows // micro,
        num_generations=job["group_size"],
        max_completion_length=job["response_tokens"],
        shuffle_dataset=False,
        temperature=1.0,
        generation_kwargs={"eos_token_id": NEVER},
        loss_type="grpo",
        beta=job["kl_coefficient"],
        use_bias_correction_kl=False,
        epsilon=job["clip"],
        optim="adamw_torch_fused",
        learning_rate=optimizer["lr"],
        lr_scheduler_type="constant",
        adam_beta1=optimizer["betas"][0],
        adam_beta2=optimizer["betas"][1],
        adam_epsilon=optimizer["eps"],
        weight_decay=optimizer["weight_decay"],
        max_grad_norm=optimizer["grad_clip"],
        dataloader_pin_memory=False,
        disable_tqdm=True,
        logging_strategy="no",
        save_strategy="no",
        report_to="none",
    )
    model = transformers.AutoModelForCausalLM.from_pretrained(job["model"], dtype=torch.float32)
    prompts = [[{"role": "user", "content": text}] for text in job["prompts"]]
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=spaces,
        args=config,
        train_dataset=Dataset.from_dict({"prompt": prompts}),
        processing_class=transformers.AutoTokenizer.from_pretrained(job["model"], padding_side="left"),
        callbacks=[callback],
    )
    trainer.eos_token_ids = [NEVER]
    trainer.remove_callback(transformers.PrinterCallback)
    return trainer


def main():
    clock = Clock()
    record = Record(clock, job["compare_steps"])
    trainer = make_trainer(record)
    record.watch(trainer)
    clock.wrap(trainer, "_generate", "sample")
    clock.wrap(trainer, "_get_per_token_logps_and_entropies", "score", lambda: not torch.is_grad_enabled())
    clock.wrap(trainer, "_prepare_inputs", "prepare")
    clock.wrap(trainer, "training_step", "train")
    clock.wrap(trainer.accelerator, "clip_grad_norm_", "optimizer")
    trainer.train()
    # A training step first prepares its inputs, which is where it samples and scores.
    steps = [
        {
            "sample": step["sample"],
            "score": step.get("score", 0.0),
            "update": step["train"] - step["prepare"] + step["optimizer"],
            "step": step["step"],
            "processor": step["processor"],
        }
        for step in clock.steps
    ]
    versions = {"trl": trl.__version__, "transformers": transformers.__version__, "torch": torch.__version__}
    answer = {"versions": versions, "steps": steps, "compare": record.answer()}
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(answer, file)


if __name__ == "__main__":
    main()
