"""The judge's side inside the jail: calls functions of foreign programs and records what they return.

Expected values are not here. A record is one line of JSON: [program, call, "value", value] or
[program, call, "error", message]; the last line is ["finished"]. Values are written by exact type
(`type(x) is int`), so no method of a foreign class takes part. What foreign code could reach in
this process would only change which values are recorded, and these are compared outside.
"""
import builtins
import json
import signal
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
set_timer, TIMER, TOO_LONG = signal.setitimer, signal.ITIMER_VIRTUAL, signal.SIGVTALRM


class OutOfTime(BaseException):
    pass


class Unsupported(Exception):
    pass


class Missing(Exception):
    pass


def main(payload, emit):
    setup = json.loads(payload)
    seconds = setup["cpu_seconds"]
    if seconds is not None:
        signal.signal(TOO_LONG, on_timer)
    for index, program in enumerate(setup["programs"]):
        run(index, program, seconds, emit)
    emit(b'["finished"]\n')


def on_timer(number, frame):
    raise OutOfTime


def run(index, program, seconds, emit):
    calls = program["args"]
    try:
        try:
            start_timer(seconds)
            function = load(program["source"], program["entry"])
        finally:
            stop_timer(seconds)
    except BaseException as error:
        message = describe(error)
        for call in range(len(calls)):
            emit(failure(index, call, message))
        return
    for call, encoded in enumerate(calls):
        try:
            # Fresh for each call, which may change them.
            args = [decode(value) for value in encoded]
            try:
                start_timer(seconds)
                value = function(*args)
            finally:
                stop_timer(seconds)
            text = encode(value, 0, [MAX_NODES])
            emit(b'[%d,%d,"value",%b]\n' % (index, call, text.encode("ascii")))
        except BaseException as error:
            emit(failure(index, call, describe(error)))


def load(source, entry):
    # What a program draws must not depend on those that ran before it in this process.
    if "random" in sys.modules:
        sys.modules["random"].seed(0)
    module = types.ModuleType("__main__")
    module.__dict__.update(__builtins__=builtins, __file__=FILE)
    sys.modules["__main__"] = module
    exec(compile(source, FILE, "exec", dont_inherit=True), module.__dict__)
    if entry not in module.__dict__:
        raise Missing("the program defines no " + entry)
    return module.__dict__[entry]


def start_timer(seconds):
    if seconds is not None:
        # Again and again, for programs that catch everything.
        set_timer(TIMER, seconds, 0.05)


def stop_timer(seconds):
    if seconds is not None:
        set_timer(TIMER, 0)


def failure(index, call, message):
    return b'[%d,%d,"error",%b]\n' % (index, call, escape(message).encode("ascii"))


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
