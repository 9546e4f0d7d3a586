"""What Python itself says of a package, against what its code graph says: classes, functions, what is extended and
overridden, which files are imported, and, with the package's tests run, which functions were called.

    etude graph build ROOT --out graph.jsonl
    python code_graph_truth.py ROOT graph.jsonl PACKAGE [TESTS]

ROOT/PACKAGE is imported; PACKAGE is its dotted name, below ROOT or ROOT/src. Prints, for each kind, how many of
Python's facts the graph has, and some that it lacks. Calls that only tests or other packages make are left out, and
so are those of code that was made at run time. A call of an override counts as found when the graph has the call of what
it overrides; the static graph cannot know more."""

import ast
import importlib
import inspect
import json
import os
import pkgutil
import sys
from pathlib import Path


def main(root, graph, package, tests):
    root = Path(root).resolve()
    nodes, edges = {}, set()
    for line in open(graph, encoding="utf-8"):
        record = json.loads(line)
        data = record["data"]
        if record["type"] == "node":
            nodes[data["id"]] = data
        else:
            edges.add((data["src"], data["etype"], data["dst"]))
    by_line = {(it["path"], it["id"].rsplit(":", 1)[1]): key for key, it in nodes.items()
               if it["kind"] in ("class", "function")}
    by_name = {(it["path"], key.split(":")[2]): key for key, it in nodes.items()
               if it["kind"] in ("class", "function")}
    source = root / "src" if (root / "src" / package.split(".")[0]).exists() else root
    sys.path.insert(0, str(source))
    module = importlib.import_module(package)
    names = [package] + [it.name for it in pkgutil.walk_packages(module.__path__, package + ".", lambda _: None)]
    modules = []
    for name in names:
        if name.rsplit(".", 1)[-1] == "__main__":
            continue
        try:
            modules.append(importlib.import_module(name))
        except Exception as error:
            print(f"{name} is left out: {error!r}")

    def path(thing):
        try:
            return Path(inspect.getsourcefile(thing)).resolve().relative_to(root).as_posix()
        except (TypeError, ValueError):
            return None

    def node(thing):
        """By where it was written: names may have been given anew."""
        where = path(thing)
        if inspect.isclass(thing):
            return where and by_name.get((where, thing.__qualname__.replace(".<locals>", "")))
        code = getattr(inspect.unwrap(thing), "__code__", None)
        return where and code and (by_name.get((where, code.co_qualname.replace(".<locals>", ""))))

    def ours(cls):
        return cls.__module__.split(".")[0] == package.split(".")[0]

    wanted = {kind: set() for kind in ("class", "function", "extends", "overrides", "imports", "calls")}
    lacking = {kind: [] for kind in wanted}

    def expect(kind, fact, there):
        if fact not in wanted[kind]:
            wanted[kind].add(fact)
            if not there:
                lacking[kind].append(fact)

    for module in modules:
        where = path(module)
        text = Path(module.__file__).read_text(encoding="utf-8")
        for found in ast.walk(ast.parse(text)):
            if isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                kind = "class" if isinstance(found, ast.ClassDef) else "function"
                expect(kind, (where, found.name, found.lineno), any(
                    (where, str(line)) in by_line for line in range(found.lineno, found.body[0].lineno + 1)))
            targets = []
            if isinstance(found, ast.Import):
                targets = [alias.name for alias in found.names]
            elif isinstance(found, ast.ImportFrom):
                is_package = Path(module.__file__).name == "__init__.py"
                base = module.__name__ if is_package else module.__name__.rpartition(".")[0]
                for _ in range(found.level - 1):
                    base = base.rpartition(".")[0]
                base = ".".join(filter(None, [base if found.level else "", found.module]))
                targets = [base] + [f"{base}.{alias.name}" for alias in found.names]
            for target in targets:
                imported = sys.modules.get(target)
                to = path(imported) if inspect.ismodule(imported) and getattr(imported, "__file__", None) else None
                if to and to != where:
                    expect("imports", (where, to), (f"file:{where}", "imports", f"file:{to}") in edges)
        for cls in vars(module).values():
            if not inspect.isclass(cls) or not ours(cls) or cls.__module__ != module.__name__ or not node(cls):
                continue
            for base in cls.__bases__:
                if ours(base) and node(base):
                    fact = (node(cls), node(base))
                    expect("extends", fact, (fact[0], "extends", fact[1]) in edges)
            for name, method in vars(cls).items():
                method = getattr(method, "__func__", getattr(method, "fget", method))
                if not inspect.isfunction(method) or not node(method) or method.__qualname__ != f"{cls.__qualname__}.{name}":
                    continue
                for base in cls.__mro__[1:]:
                    if name in vars(base):
                        other = vars(base)[name]
                        other = getattr(other, "__func__", getattr(other, "fget", other))
                        if ours(base) and inspect.isfunction(other) and node(other):
                            fact = (node(method), node(other))
                            expect("overrides", fact, (fact[0], "overrides", fact[1]) in edges)
                        break
    if tests:
        overridden = {source: target for source, kind, target in edges if kind == "overrides"}
        for caller, callee in traced(root, tests, by_name, package):
            # Which override runs is known at run time alone; a property is read; a class is called.
            meant = [callee]
            while meant[-1] in overridden and overridden[meant[-1]] not in meant:
                meant.append(overridden[meant[-1]])
            if callee.split(":")[2].endswith((".__init__", ".__new__")):
                owner = callee.split(":")[2].rpartition(".")[0]
                meant.append(by_name.get((callee.split(":")[1], owner)))
            there = any((caller, kind, it) in edges for kind in ("calls", "references") for it in meant)
            expect("calls", (caller, callee), there)
    for kind, facts in wanted.items():
        if facts:
            there = len(facts) - len(lacking[kind])
            print(f"{kind:<10} {there:>6} of {len(facts):>6}  {100 * there / len(facts):6.2f} %")
    for kind, facts in lacking.items():
        for fact in sorted(facts)[: int(os.environ.get("SHOWN", "5"))]:
            print(f"  {kind}: {fact}")




def traced(root, tests, by_name, package):
    """Calls between functions of the package while its tests run, where the caller's own line says so."""
    import pytest

    seen, known = set(), {}

    def of(code):
        if code not in known:
            try:
                where = Path(code.co_filename).resolve().relative_to(root).as_posix()
            except ValueError:
                where = None
            known[code] = where and package.split(".")[0] in where and by_name.get(
                (where, code.co_qualname.replace(".<locals>", "")))
        return known[code]

    def watch(frame, event, _):
        if event == "call" and frame.f_back is not None:
            callee, caller = of(frame.f_code), of(frame.f_back.f_code)
            if callee and caller and callee != caller and not frame.f_code.co_name.startswith("<"):
                seen.add((caller, callee))

    sys.setprofile(watch)
    try:
        pytest.main(["-q", "-x", "--no-header", "-p", "no:cacheprovider", str(root / tests)])
    finally:
        sys.setprofile(None)
    return seen


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else None)
