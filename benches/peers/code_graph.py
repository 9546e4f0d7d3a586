"""The peer of the code graph's benchmark: the nodes of CodeFuse's code graphs with their fields, and the edges contains,
imports, extends, calls and references, of a folder of Python files, by the standard library's ast, by names alone.

Prints the seconds until the graph is there, the seconds until it is JSON too, and how many nodes and edges it has."""

import ast
import json
import os
import sys
import time


class Walker(ast.NodeVisitor):
    def __init__(self, path, source, nodes, edges):
        self.path, self.nodes, self.edges = path, nodes, edges
        self.lines = source.splitlines(keepends=True)
        self.stack = ["file:" + path]

    def define(self, kind, name, node, **fields):
        identity = f"{kind}:{self.path}:{name}:{node.lineno}"
        text = "".join(self.lines[node.lineno - 1:node.end_lineno])
        self.nodes.append({"id": identity, "nodeType": kind, "name": name, "text": text, **fields})
        self.edges.append(("contains", self.stack[-1], identity))
        return identity

    def inside(self, identity, node):
        self.stack.append(identity)
        self.generic_visit(node)
        self.stack.pop()

    def header(self, node):
        return " ".join("".join(self.lines[node.lineno - 1:max(node.lineno, node.body[0].lineno - 1)]).split())

    def visit_ClassDef(self, node):
        identity = self.define("Class", node.name, node, className=node.name, classType="",
                               comment=ast.get_docstring(node) or "", startLoc=node.lineno,
                               endLoc=node.end_lineno, col=node.col_offset)
        for base in node.bases:
            self.edges.append(("extends", identity, ast.unparse(base)))
        self.inside(identity, node)

    def visit_FunctionDef(self, node):
        self.inside(self.define("Function", node.name, node, header=self.header(node),
                                comment=ast.get_docstring(node) or "", loc=node.lineno), node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Assign(self, node):
        for target in node.targets:
            if isinstance(target, ast.Name) and not self.stack[-1].startswith("Function"):
                self.define("Attribute", target.id, node, attributeType="", comment="", loc=node.lineno)
        self.generic_visit(node)

    def visit_Import(self, node):
        for alias in node.names:
            self.edges.append(("imports", self.stack[0], alias.name))

    def visit_ImportFrom(self, node):
        for alias in node.names:
            self.edges.append(("imports", self.stack[0], f"{'.' * node.level}{node.module}.{alias.name}"))

    def visit_Call(self, node):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
        if name:
            self.edges.append(("calls", self.stack[-1], name))
        self.generic_visit(node)

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load):
            self.edges.append(("references", self.stack[-1], node.id))


def build(root):
    nodes, edges = [], []
    for folder, _, files in os.walk(root):
        for name in files:
            if not name.endswith(".py"):
                continue
            path = os.path.join(folder, name)
            try:
                with open(path, encoding="utf-8") as file:
                    source = file.read()
                tree = ast.parse(source)
            except (SyntaxError, UnicodeDecodeError, ValueError):
                continue
            relative = os.path.relpath(path, root)
            nodes.append({"id": "file:" + relative, "nodeType": "File", "name": name, "fileName": name,
                          "filePath": relative, "text": source})
            Walker(relative, source, nodes, edges).visit(tree)
    by_name = {}
    for node in nodes:
        by_name.setdefault(node["name"], []).append(node["id"])
    linked = []
    for kind, source, target in edges:
        if kind == "contains":
            linked.append({"edgeType": kind, "source": source, "target": target})
            continue
        for found in by_name.get(target.rsplit(".", 1)[-1], [])[:1]:
            linked.append({"edgeType": kind, "source": source, "target": found})
    return {"nodes": nodes, "edges": linked}


def main(root):
    started = time.perf_counter()
    graph = build(root)
    built = time.perf_counter() - started
    json.dumps(graph)
    written = time.perf_counter() - started
    print(built, written, len(graph["nodes"]), len(graph["edges"]))


if __name__ == "__main__":
    sys.setrecursionlimit(10_000)
    main(sys.argv[1])
