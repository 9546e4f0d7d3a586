
# Runs a foreign program, then the expressions and statements of its tests, and records what became
# of each.
#
# A record is a token that the judge knows and one line of JSON: [0, item, "value", value],
# [0, item, "done", null] for a statement that came to its end, or [0, item, "error", message]; the last
# line is ["finished"]. What is expected of an expression is not here. A statement brings what it
# expects, so a program made to deceive this very code can deceive it; programs that exit, raise, patch
# builtins or claim to equal everything cannot. One of the statements has to fail.
import collections

# Subclasses of `dict` that compare as dicts do, as far as literals go.
DICTS = (collections.Counter, collections.OrderedDict, collections.defaultdict)
# Tests see these, whatever the program did to the module.
PRISTINE = dict(vars(builtins))
BUILTIN_TYPES = (int, float, complex, str, bytes, list, tuple, set, frozenset, dict)
FUNCTION, METHOD, CLASS = types.FunctionType, types.MethodType, type
ancestors, attributes = type.__dict__["__mro__"].__get__, type.__dict__["__dict__"].__get__
flags = type.__dict__["__flags__"].__get__
# Of a type that Python code has not made, and cannot change.
HEAP, IMMUTABLE = 1 << 9, 1 << 8
# Of the standard library's classes in Python, those that compare by value.
COMPARING = ("fractions", "numbers", "collections", "pathlib", "uuid", "ipaddress", "datetime", "decimal")
# They are there before a program is, which could bring others of these names.
for name in COMPARING:
    __import__(name)
# Modules that tests compute with: what a program puts into them is seen.
WATCHED = [
    (vars(sys.modules[name]), dict(vars(sys.modules[name])))
    for name in ("math", "cmath", "operator", "functools", "itertools", "numpy", *COMPARING)
    if name in sys.modules
]
# What an operator gives for an object that is nothing to it: not this.
OPERATORS = {"__eq__": True, "__ne__": False}
for name in ("lt", "le", "gt", "ge", "add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    OPERATORS["__" + name + "__"] = OPERATORS["__r" + name + "__"] = None
# Deeper values are not looked into.
DEPTH = 50
# Whether the program is at work: what it does with its own values is its own affair.
inside = [False]
guarded_classes = set()


class Deceit(Exception):
    pass


def main(payload, channel):
    setup = json.loads(payload)
    token = setup["token"].encode()

    def emit(record):
        channel(token + record)

    items = setup["items"]
    try:
        # Of the tests alone: what they define shadows nothing of the program.
        names = load(setup["source"])
        space = dict(seen_by_tests(names, texts_of(setup)), __builtins__=PRISTINE, __name__="__tests__")
        if setup["candidate"] is not None:
            space["candidate"] = find(names, setup["candidate"], False)
        guard(space)
        exec(compile(setup["setup"], "<tests>", "exec", dont_inherit=True), space)
    except BaseException as error:
        message = describe(error)
        for index in range(len(items)):
            emit(failure(index, message))
        emit(b'["finished"]\n')
        return
    for index, item in enumerate(items):
        try:
            kind, text = next(iter(item.items()))
            if kind != "statement":
                value = eval(compile(text, "<tests>", "eval", dont_inherit=True), space)
                try:
                    text = encode(value, 0, [MAX_NODES], None if kind == "expression" else itself)
                except Unsupported:
                    text = encode(plain(value, DEPTH), 0, [MAX_NODES])
                emit(b'[0,%d,"value",%b]\n' % (index, text.encode("ascii")))
            else:
                exec(compile(text, "<tests>", "exec", dont_inherit=True), space)
                emit(b'[0,%d,"done",null]\n' % index)
        except BaseException as error:
            emit(failure(index, describe(error)))
    emit(b'["finished"]\n')


def itself(value, depth, budget):
    """Of a value that a test compares by `is`: nothing else stands for it."""
    raise Unsupported("the returned value has type " + type_name(type(value)))


def failure(index, message):
    return b'[0,%d,"error",%b]\n' % (index, escape(message).encode("ascii"))


def plain(value, depth):
    """The value of a builtin type that `value` is equal to, if its type has none of its own to say."""
    kind = type(value)
    for base in ancestors(kind) if depth and kind is not bool else ():
        if base is int:
            return int.__add__(value, 0)
        if base is float:
            return float.__add__(value, 0.0)
        if base is str:
            return str.__str__(value)
        if base is list or base is tuple:
            return base([plain(item, depth - 1) for item in base.__iter__(value)])
        if base is set or base is frozenset:
            return {plain(item, depth - 1) for item in base.__iter__(value)}
        if base is dict:
            items = dict.items(value)
            return {plain(key, depth - 1): plain(item, depth - 1) for key, item in items}
        own = attributes(base)
        if base not in DICTS and ("__eq__" in own or "__ne__" in own):
            break
    return value


def guard(space):
    """What the program calls by a name as tests see it: what it returns is what it seems."""
    for name, value in list(space.items()):
        kind = type(value)
        if kind is FUNCTION or kind is METHOD:
            space[name] = guarded(value)
        elif kind is CLASS:
            guard_class(value)
        elif not is_trusted(kind) and (CLASS in ancestors(kind) or "__call__" in dir(kind)):
            space[name] = guarded(value)
        elif kind.__module__ == "functools" and callable(value):
            space[name] = guarded(value)


def guard_class(made):
    """The methods of a class of the program's own, in place; those of modules are the modules'."""
    for base in ancestors(made):
        if id(base) in guarded_classes or is_trusted(base) or is_of_a_module(base):
            continue
        guarded_classes.add(id(base))
        for name, value in list(attributes(base).items()):
            kind = type(value)
            if name in ("__init_subclass__", "__class_getitem__"):
                continue
            if name in OPERATORS and not (is_trusted(kind) and kind is not FUNCTION):
                value = checked(operator_of(value), OPERATORS[name])
            elif kind is FUNCTION:
                value = guarded(value)
            elif kind in (staticmethod, classmethod) and type(value.__func__) is FUNCTION:
                value = kind(guarded(value.__func__))
            else:
                continue
            type.__setattr__(base, name, value)


def is_of_a_module(made):
    module = sys.modules.get(made.__module__)
    return made.__module__ != "__main__" and vars(module).get(made.__name__) is made if module else False


def guarded(function):
    code = getattr(function, "__code__", None) if type(function) is FUNCTION else None
    # Generators and coroutines return nothing of the program's yet.
    if code is not None and code.co_flags & 0x2A0:
        return function

    def call(*args, **kwargs):
        if inside[0]:
            return function(*args, **kwargs)
        inside[0] = True
        try:
            value = function(*args, **kwargs)
        finally:
            inside[0] = False
        for module, before in WATCHED:
            for name, own in before.items():
                if module.get(name) is not own:
                    raise Deceit("the program changed " + name + " of a module that tests use")
        return honest(value, DEPTH)

    return named_as(function, call)


def operator_of(value):
    if type(value) is FUNCTION:
        return value
    # What else stands for a method, if it can be called at all.
    bound = getattr(type(value), "__get__", None)
    return lambda self, *others: (bound(value, self, type(self)) if bound else value)(*others)


def checked(operator, claim):
    """An operator that does with a value what it does not do with everything."""

    def call(self, *others):
        if inside[0]:
            return operator(self, *others)
        inside[0] = True
        try:
            value = operator(self, *others)
            if value is not NotImplemented and others and is_trusted(type(others[0])):
                refuse_claims(self, operator, claim)
                if claim is not None and value is claim:
                    refuse_likes(self, operator, claim, decoys(others[0]))
        finally:
            inside[0] = False
        return value

    return named_as(operator, call)


def refuse_claims(value, operator, claim):
    for other in (Stranger(), object()):
        try:
            given = operator(value, other)
        except Exception:
            continue
        # What is put together with anything may be an expression, or a text.
        if type(given) in (bool, int, float, complex) and (claim is None or bool(given) is claim):
            raise Deceit("a value of type " + type_name(type(value)) + " takes anything for its like")


def refuse_likes(value, operator, claim, likes):
    for other in likes:
        if operator(value, other) is claim:
            raise Deceit("a value of type " + type_name(type(value)) + " takes anything for its like")


def named_as(function, call):
    for name in ("__name__", "__doc__", "__module__", "__qualname__"):
        try:
            setattr(call, name, getattr(function, name))
        except Exception:
            pass
    call.__wrapped__ = function
    return call


def honest(value, depth):
    """Refuses values whose comparison is not their type's own: subclasses of builtin types that
    compare otherwise, and objects that compare by code that is neither the program's nor a known
    library's. A class of the program's own may say what its objects equal, but not that they equal
    everything."""
    kind = type(value)
    if is_builtin(kind) or is_trusted(kind):
        if depth and (kind is list or kind is tuple or kind is set or kind is frozenset):
            for item in value:
                honest(item, depth - 1)
        elif depth and kind is dict:
            for key, item in value.items():
                honest(key, depth - 1)
                honest(item, depth - 1)
        elif depth and hasattr(kind, "__iter__") and kind.__module__ == "collections":
            for item in list(value.items()) if isinstance(value, dict) else list(value):
                honest(item, depth - 1)
        return value
    for base in ancestors(kind):
        if base is object:
            break
        own = attributes(base)
        compares = "__eq__" in own or "__ne__" in own
        if is_builtin(base) or is_trusted(base):
            if is_builtin(base) and kind not in DICTS:
                honest_parts(value, base, depth)
            break
        if not compares or base in DICTS:
            continue
        if is_builtin_below(kind):
            raise Deceit("a value of type " + type_name(kind) + " compares in its own way")
        if is_of_a_module(base) and base.__module__ not in COMPARING:
            raise Deceit("a value of type " + type_name(kind) + " compares in its own way")
    guard_class(kind)
    return value


class Stranger:
    """Equal to nothing but itself."""


def honest_parts(value, base, depth):
    if depth and base in (list, tuple, set, frozenset):
        for item in base.__iter__(value):
            honest(item, depth - 1)
    elif depth and base is dict:
        for key, item in dict.items(value):
            honest(key, depth - 1)
            honest(item, depth - 1)


def is_builtin_below(kind):
    for base in ancestors(kind):
        if is_builtin(base):
            return True
    return False


def is_trusted(kind):
    return not flags(kind) & HEAP or bool(flags(kind) & IMMUTABLE)


def is_builtin(kind):
    for builtin in BUILTIN_TYPES:
        if kind is builtin:
            return True
    return False
