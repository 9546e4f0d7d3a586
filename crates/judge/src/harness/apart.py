
# Runs a foreign program in one process and the statements of its tests in another, and records what
# became of each statement.
#
# The payload is the length of its first part in 8 bytes, the program, and the tests; the program's
# process erases the tests before it runs anything, and has no way to the channel of the records. A
# record is one line of JSON: [0, item, "value", value], [0, item, "done", null] for a statement that
# came to its end, or [0, item, "error", message]; the last line is ["finished"].
import ctypes
import random
import resource
import signal
import time

PR_SET_DUMPABLE = 4
prctl = ctypes.CDLL(None).prctl
prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
# Seconds that a program's process has to end when nothing is asked of it any more.
FAREWELL = 1.0


def main(payload, emit):
    end = 8 + int.from_bytes(payload[:8], "little")
    source = json.loads(payload[8:end])
    # Nobody reads this process's memory or opens its descriptors, the program least of all; and an
    # interrupt ends it, instead of an exception in the middle of a test.
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    questions, answers = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        run_program(source, payload, questions[0], answers[1])
        os._exit(0)
    os.close(questions[0])
    os.close(answers[1])
    tests = json.loads(payload[end:])
    side = Side(answers[0], questions[1], False)
    side.draws = random.Random(tests["seed"])
    try:
        run_tests(side, tests, emit)
        emit(b'["finished"]\n')
    except Gone:
        end_as(os.waitpid(child, 0)[1])
    os.close(questions[1])
    await_end(child)


def run_program(source, payload, question, answer):
    ctypes.memset(id(payload) + bytes.__basicsize__ - 1, 0, len(payload))
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    # Above what programs reach by chance when they open files.
    source_fd, sink = most - 2, most - 1
    os.dup2(question, source_fd, False)
    os.dup2(answer, sink, False)
    os.closerange(3, source_fd)
    os.closerange(most, 1 << 20)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    try:
        Program(source_fd, sink, True, source).serve()
    except Gone:
        pass


class Program(Side):
    def __init__(self, source, sink, is_open, program):
        super().__init__(source, sink, is_open)
        self.program = program

    def do_load(self):
        program, self.program = self.program, ""
        return {name: Bound(value) for name, value in load(program).items() if name != "__builtins__"}

    def export(self, value, depth, budget):
        if type(value) is not Bound:
            return super().export(value, depth, budget)
        value = value.value
        try:
            text = encode(value, depth, [MOST_SHOWN], self.export)
        except Unsupported:
            text = self.name_for(value, type(value), depth, budget)
        return text


class Bound:
    """What a program's name stands for: shown if it is small, and named otherwise."""

    def __init__(self, value):
        self.value = value


MOST_SHOWN = 10_000


def run_tests(side, tests, emit):
    items = tests["items"]
    try:
        names = side.ask("load")
        space = dict(seen_by_tests(names, texts_of(tests)), __builtins__=PRISTINE, __name__="__tests__")
        if tests["candidate"] is not None:
            space["candidate"] = find(names, tests["candidate"], False)
        exec(compile(tests["setup"], "<tests>", "exec", dont_inherit=True), space)
    except Gone:
        raise
    except BaseException as error:
        message = describe(error)
        for index in range(len(items)):
            emit(failure(index, message))
        return
    for index, item in enumerate(items):
        try:
            kind, text = next(iter(item.items()))
            if kind != "statement":
                value = eval(compile(text, "<tests>", "eval", dont_inherit=True), space)
                text = encode(value, 0, [MAX_NODES], as_value if kind == "expression" else as_itself)
                emit(b'[0,%d,"value",%b]\n' % (index, text.encode("ascii")))
            else:
                exec(compile(text, "<tests>", "exec", dont_inherit=True), space)
                emit(b'[0,%d,"done",null]\n' % index)
        except Gone:
            raise
        except BaseException as error:
            emit(failure(index, describe(error)))


# Tests see these, whatever becomes of the module.
PRISTINE = dict(vars(builtins))


def as_value(value, depth, budget):
    number = value if type(value) is Remote else number_of(value)
    if number is not value:
        return encode(number, depth + 1, budget, as_value)
    return as_itself(value, depth, budget)


def as_itself(value, depth, budget):
    """Of a value that a test compares by `is`: no number of a library stands for one of Python's."""
    plain = value
    if type(value) is Remote:
        plain = (*state_of(value)[2], value)[0]
    elif isinstance(value, BUILTIN_TYPES):
        plain = plain_of(value)
    if plain is value:
        kind = state_of(value)[3] if type(value) is Remote else type_name(type(value))
        raise Unsupported("the returned value has type " + kind)
    return encode(plain, depth, budget, as_value)


def failure(index, message):
    return b'[0,%d,"error",%b]\n' % (index, escape(message).encode("ascii"))


def end_as(status):
    """Ends this process as the program's has ended."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        os._exit(128 + number)
    os._exit(os.WEXITSTATUS(status))


def await_end(child):
    end = time.monotonic() + FAREWELL
    while os.waitpid(child, os.WNOHANG)[0] == 0 and time.monotonic() < end:
        time.sleep(0.001)
