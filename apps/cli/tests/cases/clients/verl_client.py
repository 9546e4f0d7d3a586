"""verl's sandbox client, unchanged, against the server at argv[1]."""
import importlib.util
import pathlib
import sys

# The package imports torch and ray at its door; this client needs neither.
root = pathlib.Path(importlib.util.find_spec("verl").submodule_search_locations[0])
spec = importlib.util.spec_from_file_location("client", root / "utils/reward_score/sandbox_fusion/utils.py")
client = importlib.util.module_from_spec(spec)
spec.loader.exec_module(client)

url = sys.argv[1] + "/run_code"


def results(code, cases, **more):
    found, _ = client.check_correctness(url, {"inputs": [i for i, _ in cases], "outputs": [o for _, o in cases], **more}, code, timeout=5)
    return found


double = "print(int(input()) * 2)"
cases = [("2\n", "4\n"), ("21\n", "42\n")]
assert results(double, cases) == [True, True]
assert results("print(int(input()) + 2)", cases) == [True, False]
assert results("import sys; sys.exit(1)", cases) == [-2, -2]
assert results("while True: pass", [("", "")]) == [-3]
assert results("def f(a, b): return a + b", [("1\n2", "3")], fn_name="f") == [True]
assert results("this is no program", cases)[0] in (-2, -4)
response, error = client.call_sandbox_api(url, "int main() { return 0; }", None, 10, 10, 1024, "cpp")
assert error is None and response["status"] == "Success", (response, error)
response, error = client.call_sandbox_api(url, "int main(", None, 10, 10, 1024, "cpp")
assert error is None and response["status"] == "Failed" and response["compile_result"]["return_code"] != 0
print("client ok")
