"""Foreign programs and their values, for the judge's code inside the jail.

Values are written by exact type (`type(x) is int`), so no method of a foreign class takes part.
"""
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
    return module.__dict__


def find(names, entry, in_solution):
    if in_solution and "Solution" in names:
        return getattr(names["Solution"](), entry)
    if entry not in names:
        raise Missing("the program defines no " + entry)
    return names[entry]


def describe(error):
    """The exception in words, with the line of the program where it was raised."""
    kind = type(error)
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


def encode(value, depth, budget):
    """`value` as JSON text; refuses everything but the exact builtin types."""
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
        return "[" + ",".join([encode(item, depth, budget) for item in value]) + "]"
    if kind is tuple:
        return '{"tuple":[' + ",".join([encode(item, depth, budget) for item in value]) + "]}"
    if kind is set:
        return '{"set":[' + ",".join([encode(item, depth, budget) for item in value]) + "]}"
    if kind is dict:
        pairs = [
            "[" + encode(key, depth, budget) + "," + encode(item, depth, budget) + "]"
            for key, item in value.items()
        ]
        return '{"dict":[' + ",".join(pairs) + "]}"
    raise Unsupported("the returned value has type " + type_name(kind))


def decode(encoded):
    """A fresh value from its JSON form."""
    kind = type(encoded)
    if kind is list:
        return [decode(item) for item in encoded]
    if kind is not dict:
        return encoded
    ((tag, content),) = encoded.items()
    if tag == "int":
        return int(content, 16)
    if tag == "float":
        return float(content)
    if tag == "bytes":
        return bytes.fromhex(content)
    if tag == "tuple":
        return tuple([decode(item) for item in content])
    if tag == "set":
        return {decode(item) for item in content}
    return {decode(key): decode(item) for key, item in content}
