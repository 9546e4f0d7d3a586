"""Writes expected.json of every case with `transformers`, the authority on chat templates.

Run in this directory after changing a case or the fixture: `python3 generate.py`.
"""

import json
import pathlib

from transformers import AutoTokenizer

here = pathlib.Path(__file__).parent
tokenizer = AutoTokenizer.from_pretrained(here.parent / "fixtures" / "chat")
for case in sorted(path for path in here.iterdir() if path.is_dir()):
    given = json.loads((case / "given.json").read_text())
    template = case / "template.jinja"
    encoded = tokenizer.apply_chat_template(
        given["messages"],
        chat_template=template.read_bytes().decode() if template.exists() else None,
        add_generation_prompt=given["add_generation_prompt"],
        tokenize=True,
        return_dict=True,
        return_assistant_tokens_mask=True,
    )
    expected = {"tokens": encoded["input_ids"], "assistant_mask": encoded["assistant_masks"]}
    (case / "expected.json").write_text(json.dumps(expected) + "\n")
