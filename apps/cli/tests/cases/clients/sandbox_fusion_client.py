"""The public `sandbox-fusion` client, unchanged, against the server at argv[1]."""
import asyncio
import base64
import json
import sys

from sandbox_fusion import (
    RunCodeRequest, SubmitRequest, SummaryMapping, TestConfig, run_code, run_code_async, run_concurrent,
    set_endpoint, submit, submit_async, submit_safe, summary_run_code_result,
)
from sandbox_fusion import GetPromptByIdRequest, GetPromptsRequest, get_prompt_by_id, get_prompts

set_endpoint(sys.argv[1] + "/")


def run(code, language="python", **more):
    return run_code(RunCodeRequest(code=code, language=language, **more))


r = run('print("hi")')
assert r.status == "Success" and r.run_result.stdout == "hi\n", r
r = run("import sys; sys.exit(3)")
assert r.status == "Failed" and r.run_result.return_code == 3, r
r = run("while True: pass", run_timeout=1)
assert r.status == "Failed" and r.run_result.status == "TimeLimitExceeded" and r.run_result.return_code is None, r
r = run("#include <iostream>\nint main() { int x; std::cin >> x; std::cout << x * 2; }", "cpp", stdin="21")
assert r.run_result.stdout == "42", r
r = run("int main(", "cpp")
assert r.status == "Failed" and r.run_result is None and r.compile_result.return_code != 0, r
assert summary_run_code_result(r, SummaryMapping(CompileFailed="CE")) == "CE"
files = {"in/a.txt": base64.b64encode(b"xy").decode(), "none": None}
r = run('open("out.txt", "w").write(open("in/a.txt").read() * 2)', files=files, fetch_files=["out.txt"])
assert base64.b64decode(r.files["out.txt"]) == b"xyxy", r
r = run("print('x' * 400_000)")
assert len(r.run_result.stdout) == 400_001 and r.status == "Success"
requests = [[RunCodeRequest(code=f"print({i})", language="python")] for i in range(20)]
assert [r.run_result.stdout for r in run_concurrent(run_code, args=requests)] == [f"{i}\n" for i in range(20)]
assert asyncio.run(run_code_async(RunCodeRequest(code="print(1)", language="python"))).status == "Success"

CASES = [{"input": {"stdin": "2\n"}, "output": {"stdout": "4\n"}}, {"input": {"stdin": "3\n"}, "output": {"stdout": "6\n"}}]


def common_oj(code, language="python", test=json.dumps(CASES), **extra):
    config = TestConfig(
        language=language, dataset_type="CommonOJDataset", run_timeout=5.0, provided_data={"test": test}, extra=extra
    )
    completion = f"Here:\n```{language}\n{code}\n```"
    return submit(SubmitRequest(dataset="code_contests", id=0, completion=completion, config=config))


r = common_oj("print(int(input()) * 2)", run_all_cases=True)
assert r.accepted and len(r.tests) == 2 and r.extracted_code == "print(int(input()) * 2)", r
r = common_oj("print(int(input()) + 2)", run_all_cases=True, test=CASES)
assert not r.accepted and [t.passed for t in r.tests] == [True, False], r
r = common_oj("print(0)")
assert not r.accepted and len(r.tests) == 1, r
r = common_oj("#include <iostream>\nint main() { int x; std::cin >> x; std::cout << x * 2; }", "cpp")
assert r.accepted and len(r.tests) == 2, r


def live_code_bench(code, inputs, outputs, name=None):
    test = json.dumps({"input_output": json.dumps({"inputs": inputs, "outputs": outputs, "fn_name": name})})
    data = {"id": 1, "content": "c", "labels": "{}", "test": test}
    config = TestConfig(
        language="python", dataset_type="LiveCodeBenchDataset", provided_data=data, run_timeout=3,
        extra={"run_all_cases": True},
    )
    completion = f"```python\n{code}\n```"
    return submit(SubmitRequest(dataset="dataset_id", id=0, completion=completion, config=config))


assert live_code_bench("print(int(input()) + 1)", ["1\n", "2\n"], ["2", "3"]).accepted
assert live_code_bench("class Solution:\n    def add(self, a, b): return a + b", ["1\n2"], ["3"], "add").accepted
r = live_code_bench("class Solution:\n    def add(self, a, b): return a - b", ["1\n2"], ["3"], "add")
assert not r.accepted and len(r.tests) == 1, r

HUMAN_EVAL = {
    "id": 0, "content": 'def inc(x):\n    """adds one"""\n', "labels": {}, "entry_point": "inc",
    "test": "def check(candidate):\n    assert candidate(1) == 2\n",
}


def script(dataset, code, data, kind=None):
    config = TestConfig(language="python", dataset_type=kind, provided_data=data)
    completion = f"```python\n{code}\n```"
    return submit(SubmitRequest(dataset=dataset, id="a", completion=completion, config=config))


assert script("humaneval_python", "def inc(x):\n    return x + 1", HUMAN_EVAL).accepted
assert script("humaneval_python", "    return x + 1", HUMAN_EVAL).accepted
for cheat in ["import os\nos._exit(0)", "raise SystemExit", "def inc(x): return x"]:
    assert not script("humaneval_python", cheat, HUMAN_EVAL).accepted, cheat
MBPP = {"id": 0, "content": "c", "test_list": ["assert f(1) == 1", "assert f(2) == 2"]}
assert script("mbpp", "def f(x): return x", MBPP).accepted
assert not script("mbpp", "def f(x): return 1", MBPP).accepted
AUTO = {"id": 0, "content": "c", "test": "assert f(1) == 1\nprint('ok')\n"}
assert script("mine", "def f(x): return x", AUTO, "AutoEvalDataset").accepted
request = SubmitRequest(dataset="mbpp", id=7, completion="x", config=TestConfig(provided_data=MBPP))
assert not asyncio.run(submit_async(request)).accepted
request = SubmitRequest(dataset="nowhere", id=0, completion="x", config=TestConfig())
assert not submit_safe(request, max_attempts=1).accepted

prompts = get_prompts(GetPromptsRequest(dataset="small", config=TestConfig()))
assert [p.id for p in prompts] == [1, "two"] and prompts[0].prompt == "Double it.", prompts
assert get_prompt_by_id(GetPromptByIdRequest(dataset="small", id="two", config=TestConfig())).prompt == "Print one."
config = TestConfig(language="python")
registered = SubmitRequest(dataset="small", id=1, completion="```python\nprint(int(input()) * 2)\n```", config=config)
assert submit(registered).accepted
print("client ok")
