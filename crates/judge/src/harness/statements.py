
# Runs a foreign program, then the expressions and statements of its tests, and records what became
# of each.
#
# A record is one line of JSON: [0, item, "value", value], [0, item, "done", null] for a statement that
# came to its end, or [0, item, "error", message]; the last line is ["finished"]. What is expected of
# an expression is not here. A statement brings what it expects, so a program made to deceive this very
# code can deceive it; programs that exit, raise, patch builtins or claim to equal everything cannot.
# One of the statements has to fail.
import collections

PLAIN = {
    collections.Counter: dict,
    collections.OrderedDict: dict,
    collections.defaultdict: dict,
    frozenset: set,
}
# Tests see these, whatever the program did to the module.
PRISTINE = dict(vars(builtins))
BUILTIN_TYPES = (int, float, complex, str, bytes, list, tuple, set, frozenset, dict)
FUNCTION = types.FunctionType
ancestors, attributes = type.__dict__["__mro__"].__get__, type.__dict__["__dict__"].__get__


class Deceit(Exception):
    pass


def main(payload, emit):
    setup = json.loads(payload)
    items = setup["items"]
    try:
        # Of the tests alone: what they define shadows nothing of the program.
        space = dict(load(setup["source"]), __builtins__=PRISTINE, __name__="__tests__")
        guard(space)
        if setup["candidate"] is not None:
            space["candidate"] = find(space, setup["candidate"], False)
        exec(compile(setup["setup"], "<tests>", "exec", dont_inherit=True), space)
    except BaseException as error:
        message = describe(error)
        for index in range(len(items)):
            emit(failure(index, message))
        emit(b'["finished"]\n')
        return
    for index, item in enumerate(items):
        try:
            if "expression" in item:
                value = eval(compile(item["expression"], "<tests>", "eval", dont_inherit=True), space)
                kind = PLAIN.get(type(value))
                text = encode(value if kind is None else kind(value), 0, [MAX_NODES])
                emit(b'[0,%d,"value",%b]\n' % (index, text.encode("ascii")))
            else:
                exec(compile(item["statement"], "<tests>", "exec", dont_inherit=True), space)
                emit(b'[0,%d,"done",null]\n' % index)
        except BaseException as error:
            emit(failure(index, describe(error)))
    emit(b'["finished"]\n')


def failure(index, message):
    return b'[0,%d,"error",%b]\n' % (index, escape(message).encode("ascii"))


def guard(space):
    """Functions of the program as tests see them: what they return is what it seems."""
    for name, function in list(space.items()):
        # Generators and coroutines return nothing of the program's yet.
        if type(function) is FUNCTION and not function.__code__.co_flags & 0x2A0:
            space[name] = guarded(function)


def guarded(function):
    def call(*args, **kwargs):
        return honest(function(*args, **kwargs), 3)

    call.__name__, call.__doc__, call.__wrapped__ = function.__name__, function.__doc__, function
    return call


def honest(value, depth):
    """Refuses values whose comparison is not their type's own: subclasses of builtin types that
    compare otherwise, and objects that claim to equal what is no object of theirs."""
    kind = type(value)
    if is_builtin(kind):
        if depth and (kind is list or kind is tuple):
            for item in value:
                honest(item, depth - 1)
        elif depth and kind is dict:
            for item in value.values():
                honest(item, depth - 1)
        return value
    overrides = False
    for base in ancestors(kind):
        if base is object:
            break
        if is_builtin(base):
            if overrides:
                raise Deceit("a value of type " + type_name(kind) + " compares in its own way")
            return value
        own = attributes(base)
        overrides = overrides or ("__eq__" in own and own.get("__module__") == "__main__")
    if overrides:
        sentinel = object()
        if value == sentinel or not value != sentinel:
            raise Deceit("a value of type " + type_name(kind) + " claims to equal everything")
    return value


def is_builtin(kind):
    for builtin in BUILTIN_TYPES:
        if kind is builtin:
            return True
    return False
