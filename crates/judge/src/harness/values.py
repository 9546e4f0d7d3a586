"""Foreign programs and their values, for the judge's code inside the jail.

Values are written by exact type (`type(x) is int`), so no method of a foreign class takes part; numbers of
libraries become numbers of Python's first.
"""
import ast
import builtins
import json
import sys
import types

MAX_DEPTH = 100
MAX_NODES = 1_000_000
MAX_MESSAGE = 500
FILE = "<program>"

# References taken before foreign code runs, which may patch modules. The builtins of this module are
# its own already.
escape = json.encoder.encode_basestring_ascii
type_name = type.__dict__["__name__"].__get__


class OutOfTime(BaseException):
    pass


class Unsupported(Exception):
    pass


class Missing(Exception):
    pass


def load(source):
    """The names that the program defines, run as `__main__`."""
    # What a program draws must not depend on those that ran before it in this process.
    if "random" in sys.modules:
        sys.modules["random"].seed(0)
    module = types.ModuleType("__main__")
    module.__dict__.update(__builtins__=builtins, __file__=FILE)
    sys.modules["__main__"] = module
    exec(compile(source, FILE, "exec", dont_inherit=True), module.__dict__)
    return with_methods(module.__dict__)


def with_methods(names):
    """The names of a program with the methods of its class `Solution` among them, as functions whose every
    call has an object of its own: tests that call them by their name know of no class. The program sees
    none of them, whose names may be those of Python's own functions."""
    made = names.get("Solution")
    if not isinstance(made, type):
        return names
    methods = {}
    for base in type.__dict__["__mro__"].__get__(made):
        for name, value in type.__dict__["__dict__"].__get__(base).items():
            if type(value) in (types.FunctionType, staticmethod, classmethod) and not name.startswith("_"):
                methods.setdefault(name, method_of(made, name))
    return {**methods, **names}


def method_of(made, name):
    def call(*args, **named):
        return getattr(made(), name)(*args, **named)

    return call


def find(names, entry, in_solution):
    if in_solution and "Solution" in names:
        return getattr(names["Solution"](), entry)
    if entry not in names:
        raise Missing("the program defines no " + entry)
    return names[entry]


def seen_by_tests(names, texts):
    """The names of a program that its tests see. What they compute with is Python's own: a program's
    `range` or `math` stands for something only where the tests use nothing else of the program's."""
    seen = {name: value for name, value in names.items() if name != "__builtins__"}
    own = [name for name in seen if name in PLAIN_NAMES or name in MODULES_OF_TESTS]
    own = [name for name in own if not (name in MODULES_OF_TESTS and type(seen[name]) is types.ModuleType)]
    if own and has_free_names(texts):
        for name in own:
            del seen[name]
    return seen


PLAIN_NAMES = {name for name in vars(builtins) if not name.startswith("__")}
MODULES_OF_TESTS = {
    "bisect", "cmath", "collections", "copy", "decimal", "fractions", "functools", "heapq", "itertools",
    "json", "math", "np", "numpy", "operator", "random", "re", "statistics", "string", "sys", "typing",
}


def has_free_names(texts):
    """Whether the tests use a name that is neither Python's nor bound by themselves."""
    used, bound = set(), set()
    for text in texts:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Name):
                (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                bound.add(node.name)
            elif isinstance(node, ast.arg):
                bound.add(node.arg)
            elif isinstance(node, ast.alias):
                bound.add((node.asname or node.name).partition(".")[0])
    return bool(used - bound - PLAIN_NAMES - MODULES_OF_TESTS)


def texts_of(tests):
    return [tests["setup"], *[text for item in tests["items"] for text in item.values()]]


def describe(error):
    """The exception in words, with the line of the program where it was raised."""
    kind = type(error)
    try:
        # Of an exception that was raised in another process, and described there.
        if type(error.described) is str:
            return error.described[: MAX_MESSAGE + 40]
    except BaseException:
        pass
    if kind is OutOfTime:
        return "CPU time limit exceeded"
    if kind is Missing or kind is Unsupported:
        return error.args[0]
    message = type_name(kind)
    try:
        text = str(error)
        text.encode("utf-8")
        if type(text) is str and text:
            message += ": " + text
    except BaseException:
        pass
    if len(message) > MAX_MESSAGE:
        message = message[:MAX_MESSAGE] + "..."
    line = line_of(error)
    return message if line is None else message + " (line %d)" % line


def line_of(error):
    line = None
    try:
        trace = error.__traceback__
        while type(trace) is types.TracebackType:
            if trace.tb_frame.f_code.co_filename == FILE:
                line = trace.tb_lineno
            trace = trace.tb_next
    except BaseException:
        pass
    return line if type(line) is int else None


def encode(value, depth, budget, other=None):
    """`value` as JSON text. What is not of the exact builtin types is left to `other`; without one, numbers of
    libraries are written as the numbers that they are equal to, and the rest is refused."""
    budget[0] -= 1
    if depth > MAX_DEPTH or budget[0] < 0:
        raise Unsupported("the returned value is too large")
    kind = type(value)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        if -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF:
            return "%d" % value
        return '{"int":"%#x"}' % value
    if kind is float:
        text = repr(value)
        return '{"float":"%s"}' % text if text in ("nan", "inf", "-inf") else text
    if kind is str:
        # Lone surrogates have no representation outside.
        value.encode("utf-8")
        return escape(value)
    if kind is bytes:
        return '{"bytes":"%s"}' % value.hex()
    depth += 1
    if kind is list:
        return "[" + ",".join([encode(item, depth, budget, other) for item in value]) + "]"
    if kind is tuple:
        return '{"tuple":[' + ",".join([encode(item, depth, budget, other) for item in value]) + "]}"
    if kind is set:
        return '{"set":[' + ",".join([encode(item, depth, budget, other) for item in value]) + "]}"
    if kind is dict:
        pairs = [
            "[" + encode(key, depth, budget, other) + "," + encode(item, depth, budget, other) + "]"
            for key, item in value.items()
        ]
        return '{"dict":[' + ",".join(pairs) + "]}"
    if other is not None:
        return other(value, depth - 1, budget)
    number = number_of(value)
    if number is value:
        raise Unsupported("the returned value has type " + type_name(kind))
    return encode(number, depth, budget)


def number_of(value):
    """What `value` is equal to, of a number of numpy's or an array of them, a fraction or a decimal; else
    `value`. One value is told, by which nothing can equal everything."""
    kind = type(value)
    numpy, fractions, decimal = [sys.modules.get(name) for name in ("numpy", "fractions", "decimal")]
    if numpy is not None and kind is numpy.ndarray:
        return value.tolist()
    if numpy is not None and numpy.generic in type.__dict__["__mro__"].__get__(kind):
        plain = value.item()
        # Numbers that Python has no like of stay what they are.
        return value if type(plain) is kind else plain
    if fractions is not None and kind is fractions.Fraction or decimal is not None and kind is decimal.Decimal:
        return exact(value)
    return value


def exact(value):
    """A fraction or a decimal as the integer or float that it is equal to, if there is one."""
    try:
        above, below = value.as_integer_ratio()
        if below == 1:
            return above
        near = above / below
        return near if near.as_integer_ratio() == (above, below) else value
    except (ValueError, OverflowError):
        # No number, infinite, or past all floats.
        near = float(value)
        return near if near != near or near in (float("inf"), float("-inf")) else value


def decode(encoded, other=None):
    """A fresh value from its JSON form; `other` makes one of what no builtin type has."""
    kind = type(encoded)
    if kind is list:
        return [decode(item, other) for item in encoded]
    if kind is not dict:
        return encoded
    tag = next(iter(encoded))
    content = encoded[tag]
    if tag == "int":
        return int(content, 16)
    if tag == "float":
        return float(content)
    if tag == "bytes":
        return bytes.fromhex(content)
    if tag == "tuple":
        return tuple([decode(item, other) for item in content])
    if tag == "set":
        return {decode(item, other) for item in content}
    if tag == "dict" or other is None:
        return {decode(key, other): decode(item, other) for key, item in content}
    return other(encoded)


def decoys(value):
    """Values of the same type that `value` does not equal."""
    kind = type(value)
    if kind is bool or kind is int:
        return [value + step for step in (1, -1, 2, 7, 10, 1000, -9)]
    if kind is float:
        return [value + step for step in (1.0, -1.5, 2.25, 7.0, 10.5, 1e3, -9.0)]
    if kind is str or kind is bytes:
        letters = "xyz0a b" if kind is str else b"xyz0a b"
        return [value + letters[place : place + 1] for place in range(7)]
    if kind is list or kind is tuple:
        return [kind([place, *value[1:]]) for place in (-5, 10**9, "x")] + [value + kind([5]), value[1:]]
    if kind is dict:
        other = dict.fromkeys(value, "decoy")
        return [other, {**value, "decoy": 1}, {"decoy": value}]
    if kind is set:
        return [value | {("decoy", place)} for place in range(7)]
    return []
