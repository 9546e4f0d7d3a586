"""Writes the files that the adapters are tested with, every format with rows that fit and rows that do not.

    python make.py        (needs pyarrow)

The dialogues are made up here. Whatever only gold may hold says CANARY. What the adapters make of the
files, `dialogues.jsonl`, `counts.json` and `errors.txt`, was read and is kept beside them.
"""

import json
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).parent


def case(name, rows, file="rows.jsonl", **told):
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    (folder / "case.json").write_text(json.dumps({"file": file, **told}) + "\n")
    path = folder / file
    if file.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif file.endswith(".jsonl"):
        lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    else:
        path.write_text(json.dumps(rows, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def changed(row, **changes):
    """The row with other values; `None` takes a field away, `a__b` means `b` within `a`."""
    row = json.loads(json.dumps(row))
    for path, value in changes.items():
        *parents, name = path.split("__")
        at = row
        for parent in parents:
            at = at[int(parent) if parent.isdigit() else parent]
        name = int(name) if name.isdigit() else name
        if value is None:
            del at[name]
        else:
            at[name] = value
    return row


# verl


def verl_row(number):
    return {
        "data_source": "lab/diary",
        "prompt": [
            {"role": "system", "content": "Read, then answer."},
            {"role": "user", "content": f"Ann moved to Oslo in year {number}."},
            {"role": "assistant", "content": "Noted."},
            {"role": "user", "content": "Where does Ann live?"},
        ],
        "reward_model": {"style": "rule", "ground_truth": "CANARY Oslo"},
        "extra_info": {
            "group_id": f"g{number}",
            "episode_id": f"e{number}",
            "turn_roles": ["system", "history", "history", "target"],
            "turn_metadata": [
                {"turn_id": 0, "timestamp": None},
                {"turn_id": 1, "timestamp": "2023-05-08"},
                {"turn_id": 2, "timestamp": None},
                {"turn_id": 3, "timestamp": "2024-01-01"},
            ],
            "final_query": "Where does Ann live?",
            "target_answer": "CANARY Oslo",
        },
    }


def verl():
    case("001_verl", [verl_row(1), verl_row(2)], "rows.parquet", format="verl")
    several = changed(
        verl_row(3),
        prompt=[{"role": "user", "content": text} for text in ["Bob has a dog.", "Who has a dog?", "And a cat?"]],
        extra_info__turn_roles=["history", "target", "target"],
        extra_info__turn_metadata=None,
        extra_info__target_answer=["CANARY Bob", ["CANARY nobody", "CANARY none"]],
    )
    alone = {"prompt": [{"role": "user", "content": "What is 2 + 2?"}], "extra_info": {"target_answer": 4}}
    case("002_verl_several_targets", [several, alone], format="verl", multi_target=True)
    good = verl_row(4)
    case(
        "003_verl_malformed",
        [
            changed(good, prompt__1__content=" "),
            changed(good, extra_info__turn_roles=["system", "history", "history", "history"]),
            several,
            changed(good, extra_info__turn_metadata__2__turn_id=1),
            changed(good, extra_info__target_answer=None),
            changed(good, extra_info__target_answer=""),
            changed(good, extra_info__turn_roles=["history", "target"]),
            changed(good, extra_info__turn_roles=None),
            changed(good, extra_info__turn_roles=["system", "target", "history", "history"]),
            changed(good, extra_info__turn_roles=["system", "history", "history", "answer"]),
            changed(good, prompt="no messages"),
            good,
            changed(good, prompt__3__content="Where did Ann live before?"),
            "{not JSON",
        ],
        format="verl",
    )


# Rows of one question each


def qa_row(number, sample="s0", chunks=("The cat sleeps.", "The dog runs."), **extra):
    return {
        "prompt": json.dumps([{"role": "user", "content": "anything"}]),
        "chunks": json.dumps(list(chunks)),
        "num_chunks": len(chunks),
        "question": f"Question {number}?",
        "answers": json.dumps([f"CANARY {number}", f"CANARY number {number}"]),
        "target_answer": f"CANARY {number}",
        "agent_role": "answer_gen",
        "data_source": "memalpha",
        "sub_source": "squad",
        "extra_info": json.dumps(
            {
                "sample_id": sample,
                "instance_id": f"{sample}-q{number}",
                "question_idx": number,
                "turn_roles": ["history"] * len(chunks) + ["target"],
                "turn_metadata": [{"chunk_idx": i, "role": "history", "token_count": 3} for i in range(len(chunks))],
                "pre_agent": {"short_mem": "Keep what matters."},
                "reading_dates": ["2023/01/02"] + [None] * (len(chunks) - 1),
                **extra,
            }
        ),
        "metadata": json.dumps({"length": 6}),
    }


def qa():
    rows = [qa_row(0), qa_row(1), qa_row(0, "s1", ["Something else."])]
    case("011_qa", rows, "rows.parquet", format="qa")
    good = qa_row(0)
    case(
        "012_qa_malformed",
        [
            good,
            good,
            qa_row(1, chunks=["The cat sleeps.", "The dog eats."]),
            changed(qa_row(2), chunks=json.dumps(["The cat sleeps.", ""])),
            changed(qa_row(2), num_chunks=3),
            changed(qa_row(2), answers="[]", target_answer=None),
            changed(qa_row(2), question=" "),
            qa_row(2, turn_roles=["history", "history"]),
            qa_row(2, turn_roles=["target", "history", "target"]),
            qa_row(2, turn_roles=["target", "history", "history"]),
            qa_row(2, reading_dates=["2023"]),
            changed(qa_row(2), chunks='["The cat'),
            changed(qa_row(2), chunks=json.dumps(["The cat sleeps.", 7])),
        ],
        format="qa",
    )


# Mem-alpha


def memalpha_row(source="squad"):
    return {
        "prompt": "anything",
        "chunks": json.dumps(["Chunk one is about rivers.", "Chunk two is about the sea."]),
        "questions_and_answers": json.dumps(
            [
                {"question": "What is chunk one about?", "answer": "CANARY rivers", "level": 1},
                {"question": "How many chunks?", "answer": [2, "CANARY two"]},
            ]
        ),
        "data_source": source,
        "metadata": json.dumps({"source": "made", "metadata": json.dumps({"deep": [1]})}),
    }


def memalpha():
    as_lists = changed(
        memalpha_row("pubmed-rct"),
        chunks=["Sentence: x\nLabel: 3"],
        questions_and_answers=[{"question": "y", "answer": 3}],
        metadata=None,
    )
    case("021_memalpha", [memalpha_row(), changed(memalpha_row(), chunks='["Other."]')], "rows.parquet", format="memalpha")
    case("022_memalpha_lists", [as_lists], format="memalpha")
    good = memalpha_row()
    case(
        "023_memalpha_malformed",
        [
            changed(good, chunks='["a", "\\n"]'),
            changed(good, questions_and_answers="[]"),
            changed(good, questions_and_answers='[{"question": "a?", "answer": null}]'),
            changed(good, questions_and_answers='[{"question": "a?", "answer": "b"}, {"question": "", "answer": "b"}]'),
            changed(good, questions_and_answers='[{"question": "a?", "answer": {"b": 1}}]'),
            changed(good, questions_and_answers='[{"answer": "b"}]'),
            changed(good, chunks=None),
            good,
        ],
        format="memalpha",
    )


# LongMemEval


def longmemeval_row(question_id="q_1", question_type="single-session-user", **changes):
    row = {
        "question_id": question_id,
        "question_type": question_type,
        "question": "What did I cook?",
        "answer": "CANARY soup",
        "question_date": "2023/06/01 (Thu) 10:00",
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/02 (Tue) 11:00", "2023/05/21 (Sun) 09:00"],
        "haystack_session_ids": ["answer_CANARY_1", "sharegpt_2", "ultrachat_3"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "Today I made a soup.", "has_answer": True},
                {"role": "assistant", "content": "Enjoy it!", "has_answer": False},
            ],
            [
                {"role": "user", "content": "Tell me of the sea."},
                {"role": "assistant", "content": ""},
            ],
            [],
        ],
        "answer_session_ids": ["answer_CANARY_1"],
    }
    return changed(row, **changes)


def longmemeval():
    rows = [
        longmemeval_row(),
        longmemeval_row("q_1_abs", answer="CANARY You did not say what you baked.", question="What did I bake?"),
        longmemeval_row(
            "q_2",
            "multi-session",
            answer=3,
            haystack_sessions__0__0__has_answer=False,
            answer_session_ids=["answer_CANARY_1", "sharegpt_2", "gone"],
        ),
    ]
    case("031_longmemeval", rows, "rows.json", format="longmemeval")
    case(
        "032_longmemeval_malformed",
        [
            longmemeval_row("a", haystack_dates=["2023/05/20 (Sat) 02:21"]),
            longmemeval_row("b", haystack_session_ids__2=None),
            longmemeval_row("c", answer=None),
            longmemeval_row("d", question=""),
            longmemeval_row("e", haystack_sessions__0__1__content=None),
            longmemeval_row("f", haystack_sessions=[[], [], []]),
            longmemeval_row("g"),
            longmemeval_row("g"),
            longmemeval_row("h", question_type=None),
        ],
        "rows.json",
        format="longmemeval",
    )


# LoCoMo


CONVERSATION = {
    "speaker_a": "Ann",
    "speaker_b": "Bob",
    "session_2_date_time": "1:56 pm on 8 May, 2023",
    "session_2": [
        {"speaker": "Bob", "dia_id": "D2:1", "text": "I painted this!", "img_url": ["x"], "blip_caption": "a blue lake"},
        {"speaker": "Ann", "dia_id": "D2:5", "text": "Lovely."},
    ],
    "session_1_date_time": "4:04 pm on 20 January, 2023",
    "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "I have a new job."}],
    "session_3_date_time": "9:00 am on 1 June, 2023",
    "session_10_date_time": "9:00 am on 2 June, 2023",
    "session_10": [{"speaker": "Bob", "dia_id": "D10:1", "text": "Bye."}],
}

QUESTIONS = [
    {"question": "What did Bob paint?", "answer": "CANARY a lake, a tree", "evidence": ["D2:1"], "category": 1},
    {"question": "Which year?", "answer": 2023, "evidence": ["D1:1; D2:05", "D9:9"], "category": 2},
    {"question": "Would Ann move?", "answer": "CANARY likely; no roots", "evidence": [], "category": 3},
    {"question": "What does Ann have?", "answer": "CANARY a new job", "evidence": ["D1:1"], "category": 4},
    {"question": "What did Ann paint?", "adversarial_answer": "CANARY a lake", "evidence": "['D2:1']", "category": "5"},
    {"question": "Why?", "answer": "CANARY no", "adversarial_answer": "CANARY so", "evidence": ["D2:1"], "category": 5},
]


def locomo():
    nested = {
        "sample_id": "conv-1",
        "conversation": CONVERSATION,
        "qa": QUESTIONS,
        "event_summary": {"events_session_1": {"Ann": ["CANARY event"]}},
        "observation": {},
        "session_summary": {},
    }
    case("041_locomo_nested", [nested], "rows.json", format="locomo")
    case("042_locomo_flat", [{**CONVERSATION, "qa": QUESTIONS[:2]}], "rows.json", format="locomo")
    case("043_locomo_one_conversation", {**CONVERSATION, "qa": QUESTIONS[4:]}, "rows.json", format="locomo")
    case(
        "044_locomo_malformed",
        [
            changed(nested, sample_id="a", qa__3__answer=None),
            changed(nested, sample_id="b", qa__0__category=6),
            changed(nested, sample_id="c", qa=None),
            changed(nested, sample_id="d", qa=[]),
            changed(nested, sample_id="e", conversation={"speaker_a": "Ann", "session_1_date_time": "then"}),
            changed(nested, sample_id="f", conversation__session_2__1__dia_id=None),
            changed(nested, sample_id="g", qa__1__question=""),
            changed(nested, sample_id="h", conversation__session_1="text"),
            nested,
            nested,
        ],
        "rows.json",
        format="locomo",
    )


# MemoryAgentBench


def bench_row(source="ruler_qa1_197K", **changes):
    row = {
        "context": "One two three four. Five six seven.\n\nEight nine ten eleven twelve. Thirteen.",
        "questions": ["First?", "Second?"],
        "answers": [["CANARY one", "CANARY 1"], ["CANARY two"]],
        "metadata": {
            "source": source,
            "qa_pair_ids": ["p0", "p1"],
            "question_dates": [],
            "question_types": [],
            "haystack_sessions": [],
            "keypoints": ["CANARY point"],
            "previous_events": None,
            "demo": "",
        },
    }
    return changed(row, **changes)


def bench():
    rows = [
        bench_row(),
        bench_row(
            "longmemeval_s*",
            metadata__qa_pair_ids=["x", "y_abs"],
            metadata__question_types=["multi-session", "temporal-reasoning"],
            metadata__question_dates=["2023/05/20", "2023/05/21"],
        ),
    ]
    case("051_memoryagentbench", rows, "rows.parquet", format="memoryagentbench", chunk_tokens=8)
    words = " ".join(f"w{number}" for number in range(3000))
    budgets = [
        bench_row(context=words),
        bench_row("icl_banking77_5900shot_balance", context=words + " end"),
    ]
    case("052_memoryagentbench_budgets", budgets, format="memoryagentbench")
    case(
        "053_memoryagentbench_malformed",
        [
            bench_row(context=" "),
            bench_row(questions=[], answers=[]),
            bench_row(answers=[["a"]]),
            bench_row(answers=[["a"], []]),
            bench_row(questions=["First?", ""]),
            bench_row(metadata__question_dates=["2023"]),
            bench_row(context=None),
        ],
        format="memoryagentbench",
    )


# HotpotQA


def hotpotqa_row(**changes):
    row = {
        "_id": "5a8b",
        "question": "Which river is longer?",
        "answer": "CANARY the first",
        "type": "comparison",
        "level": "hard",
        "supporting_facts": [["River A", 0], ["River B", 1], ["Gone", 0]],
        "context": [
            ["River A", ["River A is long.", " It is blue."]],
            ["Hill", ["A hill."]],
            ["River B", ["River B is short.", " It is green."]],
        ],
    }
    return changed(row, **changes)


def hotpotqa():
    case("061_hotpotqa", [hotpotqa_row()], "rows.json", format="hotpotqa", chunk_tokens=12)
    columns = {
        "id": "5a8c",
        "question": "Is it yes?",
        "answer": "CANARY yes",
        "type": "bridge",
        "level": "easy",
        "supporting_facts": {"title": ["Hill"], "sent_id": [0]},
        "context": {"title": ["River A", "Hill"], "sentences": [["River A is long."], ["A hill."]]},
    }
    case("062_hotpotqa_columns", [columns], "rows.parquet", format="hotpotqa")
    case(
        "063_hotpotqa_malformed",
        [
            hotpotqa_row(answer=None),
            hotpotqa_row(context__1=["Hill", []]),
            hotpotqa_row(context=[]),
            hotpotqa_row(context=["Hill"]),
            hotpotqa_row(question=""),
            changed(columns, context__title=["River A"]),
            changed(columns, supporting_facts__sent_id=[]),
        ],
        format="hotpotqa",
    )


# SQuAD


def squad():
    nested = {
        "version": "v2.0",
        "data": [
            {
                "title": "Rivers",
                "paragraphs": [
                    {
                        "context": "Die größte Brücke ist alt. The river is long.",
                        "qas": [
                            {
                                "id": "r0",
                                "question": "What is long?",
                                "answers": [
                                    {"text": "CANARY river", "answer_start": 27},
                                    {"text": "CANARY river", "answer_start": 27},
                                    {"text": "CANARY the river", "answer_start": 27},
                                ],
                                "is_impossible": False,
                            },
                            {
                                "id": "r1",
                                "question": "What is short?",
                                "answers": [],
                                "plausible_answers": [{"text": "CANARY river", "answer_start": 27}],
                                "is_impossible": True,
                            },
                        ],
                    },
                    {"context": "Nobody asks.", "qas": []},
                ],
            },
        ],
    }
    case("071_squad_nested", nested, "rows.json", format="squad", chunk_tokens=5)
    flat = {
        "id": "f0",
        "title": "Rivers",
        "context": "The river is long.",
        "question": "What is long?",
        "answers": {"text": ["CANARY river"], "answer_start": [4]},
    }
    other = changed(flat, id="f1", question="What is short?", answers={"text": [], "answer_start": []})
    case(
        "072_squad_flat",
        [flat, changed(flat, id="f2", context="Another paragraph."), other],
        "rows.parquet",
        format="squad",
    )
    article = nested["data"][0]
    case(
        "073_squad_malformed",
        [
            changed(article, paragraphs__0__qas__0__answers=[]),
            changed(article, paragraphs__0__qas__1__is_impossible=False),
            changed(article, paragraphs__0__context=""),
            changed(article, paragraphs__0__qas__1__question=" "),
            changed(article, paragraphs__0__qas__1__id="r0"),
            changed(flat, is_impossible=False, answers={"text": [], "answer_start": []}),
            changed(flat, answers={"answer_start": []}),
            flat,
            flat,
            {"title": "neither"},
        ],
        "rows.jsonl",
        format="squad",
    )


# MemoryBench


def memorybench_row(**changes):
    row = {
        "test_idx": 7,
        "input_prompt": "Name the river.",
        "dataset_name": "NFCats",
        "lang": "en",
        "info": json.dumps({"golden_answer": "CANARY the Elbe", "category": 2}),
        "dialog": [
            {"role": "user", "content": "Name a river."},
            {"role": "assistant", "content": "Rhine."},
            {"role": "user", "content": "I meant the one of Dresden."},
        ],
        "implicit_feedback": [{"round": 1, "satisfaction_score": 2, "implicit_actions": [], "terminated": False}],
    }
    return changed(row, **changes)


def memorybench():
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "And the sea?"}]
    rows = [
        memorybench_row(),
        memorybench_row(test_idx=8, input_prompt="", input_chat_messages=messages, dialog=[]),
    ]
    case("091_memorybench", rows, format="memorybench")
    case(
        "092_memorybench_malformed",
        [
            memorybench_row(info="{}"),
            memorybench_row(info="text"),
            memorybench_row(input_prompt=None),
            memorybench_row(dialog__1__content=" "),
            memorybench_row(dataset_name=None),
            memorybench_row(),
            memorybench_row(),
        ],
        format="memorybench",
    )


# Rows with their gold in `reward_model`


def ruler_row(**changes):
    row = {
        "data_source": "hotpotqa",
        "prompt": [{"role": "user", "content": "Which city?"}],
        "context": "Document 1:\nOne two three.\n\nDocument 2:\nFour five six.",
        "reward_model": {"style": "rule", "ground_truth": ["CANARY Oslo", "CANARY oslo"]},
        "extra_info": {"index": 3, "num_docs": 2},
    }
    return changed(row, **changes)


def mem1_row(**changes):
    row = {
        "data_source": "multi",
        "question": "Who wrote it?; When?",
        "prompt": [{"role": "user", "content": "Answer all: Who wrote it?; When?"}],
        "reward_model": {"style": "rule", "ground_truth": {"target": [["CANARY Ann", "CANARY A."], ["CANARY 1999"]]}},
        "extra_info": {"index": 4, "split": "train"},
    }
    return changed(row, **changes)


def reward():
    case("101_rulerhqa", [ruler_row()], "rows.parquet", format="rulerhqa", chunk_tokens=5)
    case(
        "102_rulerhqa_malformed",
        [
            ruler_row(context=" "),
            ruler_row(prompt=[]),
            ruler_row(reward_model=None),
            ruler_row(reward_model__ground_truth=[]),
            ruler_row(reward_model__ground_truth={"target": [["a"]]}),
            ruler_row(),
            ruler_row(),
        ],
        format="rulerhqa",
    )
    beside = changed(mem1_row(), reward_model=None, extra_info__index=5, target=[["CANARY Bob"], [2001]], question=None)
    case("111_mem1", [mem1_row(), beside], format="mem1")
    case(
        "112_mem1_malformed",
        [
            mem1_row(reward_model__ground_truth__target=[["a"], []]),
            mem1_row(reward_model__ground_truth__target=[]),
            mem1_row(question=None, prompt=None),
            mem1_row(reward_model__ground_truth={"other": 1}),
        ],
        format="mem1",
    )


# Our own


def dialogue():
    row = {
        "sample_id": "d0",
        "data_source": "made",
        "split": "train",
        "document": "d0",
        "sessions": [
            {"session_id": "s1", "timestamp": "2023-05-07", "utterances": [{"source_id": "u1", "speaker": "Ann", "text": "Hi."}]},
        ],
        "questions": [
            {
                "question_id": "a",
                "text": "Who?",
                "question_type": "person",
                "gold": {"answers": ["CANARY Ann"], "evidence": ["u1"]},
            },
            {"question_id": "b", "text": "When?", "question_type": "time", "gold": {"answers": [], "abstain": True}},
        ],
        "metadata": {"made": True},
    }
    about = {"session": 0, "question": {**row["questions"][0], "question_id": "c"}}
    case(
        "081_dialogue",
        [row, changed(row, sample_id="d1"), changed(row, sample_id="d2", chunk_questions=[about])],
        format="dialogue",
    )
    case(
        "082_dialogue_malformed",
        [
            changed(row, sessions__0__utterances=[]),
            changed(row, questions=[]),
            changed(row, questions__1__gold__abstain=False),
            changed(row, questions__1__question_id="a"),
            changed(row, questions__0__text=""),
            changed(row, more=1),
            row,
            row,
            changed(row, sample_id="d3", chunk_questions=[{**about, "session": 1}]),
            changed(row, sample_id="d4", chunk_questions=[{**about, "question": {**about["question"], "text": " "}}]),
        ],
        format="dialogue",
    )


if __name__ == "__main__":
    for make in [verl, qa, memalpha, longmemeval, locomo, bench, hotpotqa, squad, dialogue, memorybench, reward]:
        make()
