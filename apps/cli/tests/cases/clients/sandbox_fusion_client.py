"""Every function of the public `sandbox-fusion` client against the server at ARGV[1].

The server has the datasets `small` (CommonOJ) and `evals` (HumanEval), files beside this one.
"""

import asyncio
import base64
import sys

import sandbox_fusion as client
from sandbox_fusion import CommandRunStatus, RunCodeRequest, RunStatus

SUM = "a, b = map(int, input().split())\nprint(a + b)"
PRODUCT = "a, b = map(int, input().split())\nprint(a * b)"

# Seconds: the first build on a busy machine reads the compiler from the disk.
BUILD = 100


def fenced(program, tag="python"):
    return f"Here it is.\n```{tag}\n{program}\n```\nThat is all."


def run(code, language="python", **more):
    return client.run_code(RunCodeRequest(code=code, language=language, **more), max_attempts=1)


def check_runs():
    done = run('import sys; print(input()); print("e", file=sys.stderr)', stdin="hello\n")
    assert done.status == RunStatus.Success and done.message == "", done
    assert done.compile_result is None and done.executor_pod_name is None, done
    result = done.run_result
    assert result.status == CommandRunStatus.Finished and result.return_code == 0, result
    assert (result.stdout, result.stderr) == ("hello\n", "e\n"), result
    assert 0 < result.execution_time < 10, result

    failed = run("print('before'); raise ValueError('no')")
    assert failed.status == RunStatus.Failed and failed.run_result.return_code == 1, failed
    assert failed.run_result.stdout == "before\n", failed
    assert "ValueError: no" in failed.run_result.stderr, failed

    endless = run("print('partial', flush=True)\nwhile True: pass", run_timeout=3)
    assert endless.status == RunStatus.Failed, endless
    assert endless.run_result.status == CommandRunStatus.TimeLimitExceeded, endless
    assert endless.run_result.return_code is None, endless
    assert endless.run_result.stdout == "partial\n", endless

    silent = run("import sys; sys.stdout.buffer.write(b'\\xff\\xfe!')")
    assert silent.run_result.stdout.endswith("!"), silent

    long = run("print('x' * 400_000)")
    assert long.status == RunStatus.Success and long.run_result.stdout == "x" * 400_000 + "\n"

    brought = base64.b64encode(b"1 2").decode()
    made = run(
        "import os\nos.makedirs('out')\nopen('out/made', 'wb').write(open('in/data', 'rb').read() + b'\\0\\xff')",
        files={"in/data": brought, "absent": None},
        fetch_files=["out/made"],
    )
    assert made.status == RunStatus.Success, made
    assert base64.b64decode(made.files["out/made"]) == b"1 2\0\xff", made

    shell = run("read line; echo \"<$line>\"; exit 3", language="bash", stdin="x\n")
    assert shell.status == RunStatus.Failed and shell.run_result.return_code == 3, shell
    assert shell.run_result.stdout == "<x>\n", shell


def check_builds():
    # Machines without a compiler answer that they have none; nothing else is accepted.
    try:
        built = run('#include <iostream>\nint main() { std::cout << 6 * 7; }', language="cpp", compile_timeout=BUILD)
    except Exception as error:
        assert "g++" in str(error), error
        return "no g++ here: builds are not checked"
    assert built.status == RunStatus.Success, built
    assert built.compile_result.status == CommandRunStatus.Finished, built
    assert built.compile_result.return_code == 0 and built.run_result.stdout == "42", built
    broken = run("int main() { return }", language="cpp", compile_timeout=BUILD)
    assert broken.status == RunStatus.Failed and broken.run_result is None, broken
    assert broken.compile_result.return_code != 0 and "error" in broken.compile_result.stderr, broken
    mapping = client.SummaryMapping(Success="ok", Failed="bad", CompileFailed="does not build")
    assert client.summary_run_code_result(broken, mapping) == "does not build"
    return None


def check_summaries():
    mapping = client.SummaryMapping(Success="ok", Failed="bad", RunFailed="wrong", RunTimeout="slow")
    said = [
        client.summary_run_code_result(run(code, run_timeout=0.5), mapping)
        for code in ("pass", "1 / 0", "while True: pass")
    ]
    assert said == ["ok", "wrong", "slow"], said


def check_concurrency():
    requests = [RunCodeRequest(code=f"print({i} ** 2)", language="python") for i in range(40)]
    replies = client.run_concurrent(client.run_code, args=[[request] for request in requests], concurrency=20)
    assert [reply.run_result.stdout for reply in replies] == [f"{i ** 2}\n" for i in range(40)]
    pure = client.run_concurrent_pure([lambda: run("print(1)")] * 3)
    assert [reply.run_result.stdout for reply in pure] == ["1\n"] * 3

    async def together():
        return await asyncio.gather(*(client.run_code_async(request) for request in requests))

    replies = asyncio.run(together())
    assert [reply.run_result.stdout for reply in replies] == [f"{i ** 2}\n" for i in range(40)]


def config(**fields):
    return client.TestConfig(**fields)


def request(dataset, id, completion, **fields):
    return client.SubmitRequest(dataset=dataset, id=id, completion=completion, config=config(**fields))


def cases(n):
    return [{"input": {"stdin": f"{i} {i + 1}\n"}, "output": {"stdout": f"{2 * i + 1}\n"}} for i in range(n)]


def check_stdio_submissions():
    columns = {"provided_data": {"test": cases(5)}, "language": "python", "dataset_type": "CommonOJDataset"}
    for name in ("code_contests", "not registered"):
        right = client.submit(request(name, 0, fenced(SUM), run_timeout=5, **columns), max_attempts=1)
        assert right.accepted and right.id == 0 and right.extracted_code.strip() == SUM, right
        assert [test.passed for test in right.tests] == [True] * 5, right
        assert right.extracted_type in (None, "fenced"), right
        info = right.tests[0].exec_info
        assert info.status == RunStatus.Success and info.run_result.stdout == "1\n", info
        assert right.tests[1].test_info["input"]["stdin"] == "1 2\n", right
    wrong = client.submit(request("code_contests", "x-1", fenced(PRODUCT), **columns), max_attempts=1)
    assert not wrong.accepted and wrong.id == "x-1", wrong
    assert len(wrong.tests) < 5 and not wrong.tests[-1].passed, wrong
    every = client.submit(
        request("code_contests", 0, fenced("print(1)"), extra={"run_all_cases": True}, **columns), max_attempts=1
    )
    assert not every.accepted and [test.passed for test in every.tests] == [True] + [False] * 4, every
    nothing = client.submit(request("code_contests", 0, "I do not know.", **columns), max_attempts=1)
    assert not nothing.accepted, nothing
    doubles = [{"input": {"stdin": f"{i}\n"}, "output": {"stdout": f"{2 * i}\n"}} for i in range(3)]
    built = "#include <iostream>\nint main() { int x; std::cin >> x; std::cout << x * 2; }"
    building = {"provided_data": {"test": doubles}, "language": "cpp", "compile_timeout": BUILD}
    compiled = client.submit_safe(request("code_contests", 0, fenced(built, "cpp"), **building), max_attempts=1)
    # Without a compiler there are no tests.
    assert compiled.accepted == (len(compiled.tests) == 3), compiled
    slow = client.submit(
        request("code_contests", 0, fenced("while True: pass"), run_timeout=0.5, **columns), max_attempts=1
    )
    assert not slow.accepted, slow
    assert slow.tests[0].exec_info.run_result.status == CommandRunStatus.TimeLimitExceeded, slow


def check_call_submissions():
    import base64
    import json
    import pickle
    import zlib

    def packed(value):
        return base64.b64encode(zlib.compress(pickle.dumps(value))).decode()

    def ask(completion, test, write=json.dumps, **more):
        inner = {"input_output": json.dumps(test)}
        data = {"id": 0, "content": "", "labels": "{}", "test": write(inner)}
        asked = request(
            "dataset_id", 0, completion, dataset_type="LiveCodeBenchDataset", provided_data=data, run_timeout=3, **more
        )
        return client.submit(asked, max_attempts=1)

    calls = {"inputs": ["1\n2", "3\n4"], "outputs": ["3", "7"], "fn_name": "add"}
    solution = "class Solution:\n    def add(self, a, b):\n        return a + b"
    right = ask(fenced(solution), calls, extra={"run_all_cases": True})
    assert right.accepted and [test.passed for test in right.tests] == [True], right
    wrong = ask(fenced(solution.replace("+", "-")), calls)
    assert not wrong.accepted and [test.passed for test in wrong.tests] == [False], wrong
    stdio = {"inputs": ["1 2\n"], "outputs": ["3"], "fn_name": None}
    assert ask(fenced(SUM), stdio).accepted
    assert not ask(fenced(PRODUCT), stdio).accepted
    # As LiveCodeBench packs its private tests.
    for tests in (calls, stdio):
        right, wrong = (solution, SUM)[tests is stdio], (PRODUCT, solution)[tests is stdio]
        assert ask(fenced(right), tests, lambda inner: packed(json.dumps(inner))).accepted
        assert not ask(fenced(wrong), tests, lambda inner: packed(json.dumps(inner))).accepted


def check_script_submissions():
    mbpp = {"content": "Double it.", "test_list": ["assert twice(2) == 4", "assert twice(-1) == -2"]}
    for program, accepted in (("def twice(x):\n    return 2 * x", True), ("def twice(x):\n    return x * x", False)):
        got = client.submit(
            request("mbpp_rows", 1, fenced(program), dataset_type="MBPPDataset", provided_data=mbpp), max_attempts=1
        )
        assert got.accepted is accepted and len(got.tests) == 1, got
    auto = {"content": "", "test": {"code": "assert three() == 3"}, "labels": "{}"}
    cheats = ("import os; os._exit(0)", "raise SystemExit", "def three(): return 4")
    for program, accepted in [("def three(): return 3", True), *((cheat, False) for cheat in cheats)]:
        got = client.submit(
            request("auto", 1, fenced(program), dataset_type="AutoEvalDataset", language="python", provided_data=auto),
            max_attempts=1,
        )
        assert got.accepted is accepted, got


def check_registered_datasets():
    double = fenced("print(int(input()) * 2)")
    prompts = client.get_prompts(client.GetPromptsRequest(dataset="small", config=config()))
    assert [prompt.id for prompt in prompts] == [1, "two"], prompts
    assert prompts[0].prompt == "Double it." and prompts[0].labels == {"level": 1}, prompts
    later = client.get_prompts(client.GetPromptsRequest(dataset="small", config=config(), offset=1, limit=5))
    assert [prompt.id for prompt in later] == ["two"], later
    one = client.get_prompt_by_id(client.GetPromptByIdRequest(dataset="evals", config=config(), id="E/0"))
    assert one.id == "E/0" and one.prompt.startswith("def twice"), one
    assert client.submit(request("small", 1, double, language="python"), max_attempts=1).accepted
    assert not client.submit(request("small", "two", double, language="python"), max_attempts=1).accepted
    for body, accepted in (("def twice(x):\n    return x + x", True), ("    return x + x", True), ("    return x", False)):
        got = client.submit(request("evals", "E/0", fenced(body)), max_attempts=1)
        assert got.accepted is accepted, got

    async def asynchronously():
        prompts = await client.get_prompts_async(client.GetPromptsRequest(dataset="small", config=config()))
        asked = client.GetPromptByIdRequest(dataset="small", config=config(), id="two")
        one = await client.get_prompt_by_id_async(asked)
        got = await client.submit_async(request("small", 1, double, language="python"), max_attempts=1)
        safe = await client.submit_safe_async(request("small", 7, double, language="python"), max_attempts=1)
        return len(prompts), one.id, got.accepted, safe.accepted

    assert asyncio.run(asynchronously()) == (2, "two", True, False)


def check_refusals():
    def refused(function, code):
        try:
            function()
        except Exception as error:
            assert f"code {code}" in str(error), error
            return str(error)
        raise AssertionError(f"not refused with {code}")

    assert "/etc/made" in refused(lambda: run("pass", files={"/etc/made": ""}), 422)
    assert "fetch_files" in refused(lambda: run("pass", fetch_files=["../out"]), 422)
    assert "run_timeout" in refused(lambda: run("pass", run_timeout=-1), 422)
    refused(lambda: run("pass", language="racket"), 400)
    refused(lambda: client.submit(request("nowhere", 1, "x"), max_attempts=1), 400)
    refused(lambda: client.get_prompts(client.GetPromptsRequest(dataset="nowhere", config=config())), 400)
    logic = "submit_code_blocks([CodeBlock(priority=40, code='', language='')])"
    asked = request("small", 1, fenced(SUM), custom_extract_logic=logic)
    assert "custom_extract_logic" in refused(lambda: client.submit(asked, max_attempts=1), 400)
    safe = client.submit_safe(request("nowhere", 5, "x"), max_attempts=1)
    assert not safe.accepted and safe.id == 5 and safe.tests == [], safe
    cells = client.RunJupyterRequest(cells=["1"])
    refused(lambda: client.run_jupyter(cells, max_attempts=1), 501)

    async def asynchronously():
        await client.run_jupyter_async(cells, max_attempts=1)

    refused(lambda: asyncio.run(asynchronously()), 501)


def main():
    client.set_endpoint(sys.argv[1] + "/")
    client.set_sandbox_endpoint(sys.argv[1])
    client.set_dataset_endpoint(sys.argv[1])
    checks = [function for name, function in list(globals().items()) if name.startswith("check_")]
    for check in checks:
        note = check()
        print(check.__name__, note or "held")
    offered = {name for name in client.__all__ if callable(getattr(client, name)) and name[0].islower()}
    used = open(__file__).read()
    assert all(f"client.{name}" in used for name in offered), offered


main()
print("client ok")
