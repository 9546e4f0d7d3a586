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

# References taken before foreign code runs, which may patch modules and builtins.
escape = json.encoder.encode_basestring_ascii
float_repr = float.__repr__
int_repr = int.__repr__
encode_utf8 = str.encode
type_name = type.__dict__["__name__"].__get__
subclass_check = type.__dict__["__subclasscheck__"]
set_timer = signal.setitimer
ITIMER = signal.ITIMER_VIRTUAL
TOO_LONG = signal.SIGVTALRM


class OutOfTime(BaseException):
    pass


class Unsupported(Exception):
    pass


def main(payload, emit):
    setup = json.loads(payload)
    seconds = setup["cpu_seconds"]
    if seconds is not None:
        signal.signal(TOO_LONG, on_timer)
    main_module = sys.modules.get("__main__")
    for index, program in enumerate(setup["programs"]):
        lines = run(index, program, seconds, emit)
        for line in lines:
            emit(line)
        if main_module is not None:
            sys.modules["__main__"] = main_module
    emit(b'["finished"]\n')


def on_timer(number, frame):
    raise OutOfTime


def run(
    index,
    program,
    seconds,
    emit,
    # Bound here, where foreign code that patches builtins does not reach.
    compile=compile,
    exec=exec,
    enumerate=enumerate,
    encode=lambda value: encode(value),
    BaseException=BaseException,
):
    calls = program["args"]
    space = {"__name__": "__main__", "__builtins__": builtins, "__file__": FILE}
    module = types.ModuleType("__main__")
    module.__dict__.update(space)
    sys.modules["__main__"] = module
    space = module.__dict__
    try:
        start_timer(seconds)
        code = compile(program["source"], FILE, "exec", dont_inherit=True)
        exec(code, space)
        stop_timer(seconds)
        function = space[program["entry"]]
    except KeyError as error:
        stop_timer(seconds)
        missing = program["entry"] not in space
        text = "no function named " + program["entry"] if missing else describe(error)
        return [record(index, call, "error", text) for call, _ in enumerate(calls)]
    except BaseException as error:
        stop_timer(seconds)
        text = describe(error)
        return [record(index, call, "error", text) for call, _ in enumerate(calls)]
    for call, encoded in enumerate(calls):
        try:
            args = [decode(value) for value in encoded]
            start_timer(seconds)
            value = function(*args)
            stop_timer(seconds)
            text = encode(value)
            emit(b"[%d,%d,\"value\",%b]\n" % (index, call, encode_utf8(text, "ascii")))
        except BaseException as error:
            stop_timer(seconds)
            emit(record(index, call, "error", describe(error)))
    return []


def start_timer(seconds):
    if seconds is not None:
        # Again and again, for programs that catch everything.
        set_timer(ITIMER, seconds, 0.05)


def stop_timer(seconds):
    if seconds is not None:
        set_timer(ITIMER, 0)


def record(index, call, kind, text):
    return b'[%d,%d,"%b",%b]\n' % (index, call, kind.encode(), escape(text).encode("ascii"))


def describe(error, type=type, str=str, len=len):
    """The exception as one line, with the line of the program where it was raised."""
    kind = type(error)
    if kind is OutOfTime:
        return "CPU time limit exceeded"
    name = type_name(kind)
    try:
        text = str(error)
        if type(text) is not str:
            text = ""
        encode_utf8(text, "utf-8")
    except BaseException:
        text = ""
    line = None
    try:
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == FILE:
                line = trace.tb_lineno
            trace = trace.tb_next
    except BaseException:
        line = None
    message = name if text == "" else name + ": " + text
    if len(message) > MAX_MESSAGE:
        message = message[:MAX_MESSAGE] + "..."
    return message if type(line) is not int else message + " (line %d)" % line


def encode(value, type=type, str=str, len=len, sorted=sorted):
    """`value` as JSON text; refuses everything but the exact builtin types."""
    budget = [MAX_NODES]
    return encode_node(value, 0, budget, type)


def encode_node(value, depth, budget, type):
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
            return int_repr(value)
        return '{"int":"%#x"}' % value
    if kind is float:
        text = float_repr(value)
        if text in ("nan", "inf", "-inf"):
            return '{"float":"%s"}' % text
        return text
    if kind is str:
        encode_utf8(value, "utf-8")
        return escape(value)
    if kind is bytes:
        return '{"bytes":"%s"}' % value.hex()
    depth += 1
    if kind is list:
        return "[" + ",".join([encode_node(item, depth, budget, type) for item in value]) + "]"
    if kind is tuple:
        items = ",".join([encode_node(item, depth, budget, type) for item in value])
        return '{"tuple":[' + items + "]}"
    if kind is set:
        items = ",".join([encode_node(item, depth, budget, type) for item in value])
        return '{"set":[' + items + "]}"
    if kind is dict:
        pairs = [
            "[" + encode_node(key, depth, budget, type) + "," + encode_node(item, depth, budget, type) + "]"
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
