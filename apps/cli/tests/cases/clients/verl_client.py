"""verl's reward function for SandboxFusion, its two files as they are released, against ARGV[1].

They are loaded by path: the package around them would import a training framework.
"""

import importlib.metadata
import importlib.util
import json
import sys
import threading

SUM = "a, b = map(int, input().split())\nprint(a + b)"


def released():
    folder = importlib.metadata.distribution("verl").locate_file("verl/utils/reward_score/sandbox_fusion")
    spec = importlib.util.spec_from_file_location(
        "released_client", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["released_client"] = module
    spec.loader.exec_module(module)
    return module, sys.modules["released_client.utils"]


def fenced(program):
    return f"So:\n```python\n{program}\n```\n"


def main():
    url = sys.argv[1] + "/run_code"
    client, utils = released()
    gate = threading.Semaphore(8)

    def score(completion, cases, **more):
        value, metadata = client.compute_score(url, gate, 1024, completion, cases, timeout=5, **more)
        assert all(case.get("api_request_error") is None for case in metadata), metadata
        return value, [case.get("status") for case in metadata]

    numbers = [(i, i + 1) for i in range(12)]
    stdio = {"inputs": [f"{a} {b}\n" for a, b in numbers], "outputs": [f"{a + b}\n" for a, b in numbers]}
    assert score(fenced(SUM), stdio) == (1.0, ["success"] * 12)
    assert score(fenced(SUM), json.dumps(stdio), continuous=True)[0] == 1.0
    assert score(fenced(SUM.replace("a + b", "1")), stdio) == (1 / 12, ["success"] + ["wrong_answer"] * 11)
    assert score(fenced("print(1 / 0)"), {"inputs": [""], "outputs": [""]}) == (0.0, ["runtime_error"])
    assert score("no program", stdio)[0] == 0.0

    calls = {"inputs": ["[1, 2]\n3", "[]\n0"], "outputs": ["[1, 2, 3]", "[0]"], "fn_name": "put"}
    program = "class Solution:\n    def put(self, items, more):\n        return items + [more]"
    assert score(fenced(program), calls) == (1.0, ["success"] * 2)

    asserts = {"assert_case": ["assert twice(2) == 4", "assert twice(2) == 5"]}
    assert score(fenced("def twice(x):\n    return 2 * x"), asserts) == (0.5, ["success", "runtime_error"])

    results, metadata = utils.check_correctness(
        url, {"inputs": [None], "outputs": ["x"]}, "while True: pass", timeout=1, concurrent_semaphore=gate
    )
    assert results == [-3] and metadata[0]["status"] == "timeout", metadata
    assert metadata[0]["exit_code"] is None, metadata

    reply, error = utils.call_sandbox_api(url, "print(1)", None, 10, 10, 1024, "python")
    assert error is None and reply["status"] == "Success", (reply, error)

    results, metadata = utils.check_correctness(
        url, {"inputs": ["", ""], "outputs": ["", ""]}, "int main() { return }", timeout=100, language="cpp"
    )
    if metadata[0]["status"] == "api_error":
        assert results == [-1, -1], metadata
        print("no g++ here: builds are not checked")
    else:
        assert results == [-4, -4], metadata
        assert metadata[0]["status"] == "compile_error" and "error" in metadata[0]["compile_stderr"], metadata
    print("verl", importlib.metadata.version("verl"), "held")
    print("client ok")


main()
