
# What passes between two processes: values by exact type, everything else as a name for what stays
# where it is. Each side asks the other to call, compare and look at what it has named; answers are
# values again. Nothing that is said here can make the other side run code of the speaker's.
import collections
import copy
import operator
import os

# What a side does with its own objects when asked to.
OPERATIONS = {
    name: getattr(operator, name)
    for name in (
        "eq ne lt le gt ge add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift "
        "getitem setitem delitem contains neg pos abs invert index"
    ).split()
}
OPERATIONS.update(
    bool=bool, len=len, iter=iter, next=next, str=str, repr=repr, format=format, hash=hash, int=int,
    float=float, complex=complex, round=round, divmod=divmod, reversed=reversed, isinstance=isinstance,
    issubclass=issubclass, dir=dir, copy=copy.copy, deepcopy=copy.deepcopy, delattr=delattr,
)
MUTABLE = (list, dict, set, bytearray)
# Subclasses of `dict` that compare as dicts do.
DICTS = (collections.Counter, collections.OrderedDict, collections.defaultdict)
BUILTIN_TYPES = (int, float, str, bytes, list, tuple, set, frozenset, dict)
read, write = os.read, os.write


def time_parts(names):
    return lambda value: None if getattr(value, "tzinfo", None) else [getattr(value, n) for n in names.split()]


# Values of libraries, by what they are made from; `None` for those that are not that simple.
LIBRARY = {
    ("builtins", "complex"): lambda value: [value.real, value.imag],
    ("builtins", "range"): lambda value: [value.start, value.stop, value.step],
    ("builtins", "frozenset"): lambda value: [list(value)],
    ("builtins", "bytearray"): lambda value: [bytes(value)],
    ("collections", "deque"): lambda value: [list(value), value.maxlen],
    ("collections", "Counter"): lambda value: [dict(value)],
    ("collections", "OrderedDict"): lambda value: [list(value.items())],
    ("collections", "defaultdict"): lambda value: [value.default_factory, dict(value)],
    ("fractions", "Fraction"): lambda value: [value.numerator, value.denominator],
    ("decimal", "Decimal"): lambda value: [str(value)],
    ("datetime", "date"): time_parts("year month day"),
    ("datetime", "time"): time_parts("hour minute second microsecond"),
    ("datetime", "datetime"): time_parts("year month day hour minute second microsecond"),
    ("datetime", "timedelta"): lambda value: [value.days, value.seconds, value.microseconds],
    ("pathlib", "PosixPath"): lambda value: [str(value)],
}


class Gone(BaseException):
    """The other side has ended."""


class Deceit(Exception):
    pass


class Side:
    """One end. `open` sides answer for every attribute of what they have named, the others for those
    that are public: nobody climbs from a test's object to the tests."""

    def __init__(self, source, sink, is_open):
        self.source, self.sink, self.is_open = source, sink, is_open
        self.received = b""
        self.named, self.names = [], {}
        self.known = {}
        self.at_work = []

    def ask(self, verb, *parts):
        """The other side's answer; whatever it asks meanwhile is answered."""
        texts = [self.encoded(part) for part in parts]
        self.send('["ask","%s",[%s]]' % (verb, ",".join(texts)))
        while True:
            message = self.receive()
            if message[0] == "ask":
                self.answer(message)
            elif message[0] == "raise":
                raise self.error(message[1], message[2], message[3])
            else:
                for place, changed in message[2]:
                    put_into(parts[1][place], self.decoded(changed))
                if message[1] == {"argument": True}:
                    return parts[1][message[3]]
                return self.decoded(message[1])

    def serve(self):
        while True:
            self.answer(self.receive())

    def answer(self, message):
        try:
            _, verb, parts = message
            values = [self.decoded(part) for part in parts]
            result = getattr(self, "do_" + verb)(*values)
            if verb != "call":
                result = '["answer",%s,[],0]' % self.encoded(result)
        except Gone:
            raise
        except BaseException as error:
            result = self.raised(error)
        self.send(result)

    def do_call(self, function, args, named):
        before = [self.text_of_mutable(value) for value in args]
        result = function(*args, **named)
        changed = []
        for place, text in enumerate(before):
            if text is not None:
                after = self.encoded(args[place])
                if after != text:
                    changed.append("[%d,%s]" % (place, after))
        for place, value in enumerate(args):
            if value is result and type(value) in MUTABLE:
                return '["answer",{"argument":true},[%s],%d]' % (",".join(changed), place)
        return '["answer",%s,[%s],0]' % (self.encoded(result), ",".join(changed))

    def text_of_mutable(self, value):
        return self.encoded(value) if type(value) in MUTABLE else None

    def do_get(self, value, name):
        self.refuse_private(name)
        return getattr(value, name)

    def do_set(self, value, name, new):
        self.refuse_private(name)
        setattr(value, name, new)

    def do_operate(self, name, operands):
        self.at_work.append((name, [id(value) for value in operands]))
        try:
            return OPERATIONS[name](*operands)
        finally:
            self.at_work.pop()

    def would_bounce(self, name, remote):
        """Whether the other side asked for this very operation: its operand knows no answer either."""
        return bool(self.at_work) and self.at_work[-1][0] == name and id(remote) in self.at_work[-1][1]

    def refuse_private(self, name):
        if not self.is_open and (type(name) is not str or name.startswith("_")):
            raise AttributeError(name)

    # Values.

    def encoded(self, value):
        return encode(value, 0, [MAX_NODES], self.export)

    def export(self, value, depth, budget):
        """As JSON text, what is of no exact builtin type."""
        kind = type(value)
        if kind is Remote:
            return '{"yours":%d}' % state_of(value)[1]
        place = (kind.__module__, type_name(kind))
        parts = None
        if place in LIBRARY and member(place) is kind:
            parts = LIBRARY[place](value)
        elif place[0] == "numpy":
            place, parts = ("numpy", "array"), numpy_parts(value)
        if parts is not None:
            return '{"made":[%s,%s]}' % (json.dumps(place), encode(parts, depth + 1, budget, self.export))
        if isinstance(value, type) and vars(builtins).get(type_name(value)) is value:
            return '{"builtin":"%s"}' % type_name(value)
        if kind is types.ModuleType and is_common(value.__name__):
            return '{"module":%s}' % escape(value.__name__)
        if (not self.is_open or is_exception(value)) and is_of_a_library(value):
            return '{"of_a_library":[%s,%s]}' % (escape(value.__module__), escape(value.__qualname__))
        return self.name_for(value, kind, depth, budget)

    def name_for(self, value, kind, depth, budget):
        number = self.names.get(id(value))
        if number is None:
            number = self.names[id(value)] = len(self.named)
            self.named.append(value)
        known = '{"mine":%d,"type":%s' % (number, escape(type_name(kind)))
        if is_exception(value):
            bases = [self.export(base, depth + 1, budget) for base in value.__bases__]
            return known + ',"name":%s,"bases":[%s]}' % (escape(type_name(value)), ",".join(bases))
        plain = plain_of(value)
        if plain is not value:
            known += ',"plain":' + encode(plain, depth + 1, budget, self.export)
        return known + "}"

    def decoded(self, encoded):
        return decode(encoded, self.imported)

    def imported(self, encoded):
        if "yours" in encoded:
            return self.named[encoded["yours"]]
        if "made" in encoded:
            return made(encoded["made"], self.decoded)
        if "builtin" in encoded:
            return builtin_type(encoded["builtin"])
        if "module" in encoded:
            return module_named(encoded["module"])
        if "of_a_library" in encoded:
            found = of_a_library(*encoded["of_a_library"])
            if not self.is_open and not is_exception(found):
                raise Unsupported("no exception: " + encoded["of_a_library"][1])
            return found
        number = encoded["mine"]
        if number not in self.known:
            self.known[number] = self.stand_in(number, encoded)
        return self.known[number]

    def stand_in(self, number, encoded):
        if "bases" in encoded:
            bases = tuple([self.decoded(base) for base in encoded["bases"]])
            if all([issubclass(base, BaseException) for base in bases]):
                return type(encoded["name"], bases, {})
        plain = (self.decoded(encoded["plain"]),) if "plain" in encoded else ()
        return Remote((self, number, plain, encoded["type"]))

    # Exceptions.

    def raised(self, error):
        kind = type(error)
        try:
            text = self.encoded(list(BaseException.__dict__["args"].__get__(error)))
        except BaseException:
            text = "[]"
        try:
            name = self.encoded(kind)
        except BaseException:
            name = '{"builtin":"RuntimeError"}'
        return '["raise",%s,%s,%s]' % (name, text, escape(describe(error)))

    def error(self, kind, args, described):
        kind, args = self.decoded(kind), self.decoded(args)
        if not is_exception(kind):
            kind = RuntimeError
        try:
            error = kind(*args)
        except Exception:
            error = RuntimeError(described)
        error.described = str(described)[: MAX_MESSAGE + 40]
        return error

    # Bytes.

    def send(self, text):
        data = memoryview(text.encode("ascii") + b"\n")
        try:
            while data:
                data = data[write(self.sink, data) :]
        except OSError:
            raise Gone

    def receive(self):
        pieces = [self.received]
        while b"\n" not in pieces[-1]:
            try:
                piece = read(self.source, 1 << 16)
            except OSError:
                raise Gone
            if not piece:
                raise Gone
            pieces.append(piece)
        line, _, self.received = b"".join(pieces).partition(b"\n")
        return json.loads(line)


def state_of(remote):
    return object.__getattribute__(remote, "state")


class Remote:
    """An object of the other side."""

    __slots__ = ("state",)

    def __init__(self, state):
        object.__setattr__(self, "state", state)

    def __getattribute__(self, name):
        side, _, plain, _ = state_of(self)
        if name == "__class__" and plain:
            return type(plain[0])
        if name in ("__copy__", "__deepcopy__"):
            return lambda *memo: operate(self, name.strip("_"), [self])
        return side.ask("get", self, name)

    def __setattr__(self, name, value):
        state_of(self)[0].ask("set", self, name, value)

    def __call__(self, *args, **named):
        return state_of(self)[0].ask("call", self, list(args), named)

    def __enter__(self):
        return self.__enter__()

    def __exit__(self, *error):
        return self.__exit__(None, None, None)

    def __delattr__(self, name):
        operate(self, "delattr", [self, name])

    def __instancecheck__(self, value):
        return operate(self, "isinstance", [value, self])

    def __subclasscheck__(self, value):
        return operate(self, "issubclass", [value, self])


def operate(remote, name, operands):
    side = state_of(remote)[0]
    if len(operands) == 2 and not side.is_open and name in QUESTIONED:
        ours = [value for value in operands if type(value) is not Remote]
        if len(ours) == 1:
            return questioned(side, name, operands)
    return side.ask("operate", name, operands)


# Operators that a value may not answer alike whatever it is put together with.
QUESTIONED = ("eq", "ne", "lt", "le", "gt", "ge", "sub", "truediv", "mod", "contains")


def questioned(side, name, operands):
    """The answer, if it has to do with the operands: a value of the program's own may say what it
    equals, but not that it equals everything. The same is asked with other values of the same type, in
    an order that the program cannot know, and with an object that is nothing to it."""
    ours = 0 if type(operands[0]) is not Remote else 1
    remote = operands[1 - ours]
    plain = state_of(remote)[2]
    if plain and name != "contains":
        pair = [plain[0], operands[1]] if ours else [operands[0], plain[0]]
        return OPERATIONS[name](*pair)
    asked = [operands[ours], *decoys(operands[ours]), object()]
    order = list(range(len(asked)))
    side.draws.shuffle(order)
    answers = {}
    for place in order:
        pair = list(operands)
        pair[ours] = asked[place]
        try:
            answers[place] = side.ask("operate", name, pair)
        except Exception as error:
            answers[place] = error
    answer, stranger = answers[0], answers[len(asked) - 1]
    if isinstance(answer, Exception):
        raise answer
    alike = [answers[place] for place in range(1, len(asked) - 1)]
    claim = {"eq": True, "contains": True, "ne": False}.get(name)
    deceives = type(stranger) in (bool, int, float, complex) and (claim is None or stranger is claim)
    if claim is not None:
        deceives = answer is claim and (deceives or any([other is claim for other in alike]))
    elif name in ("sub", "truediv", "mod"):
        deceives = deceives or bool(alike) and all([type(o) is type(answer) and o == answer for o in alike])
    if deceives and name != "contains":
        kind = state_of(remote)[3]
        raise Deceit("a value of type " + kind + " takes anything for its like")
    return answer


def forwarded(name, swapped):
    def method(self, *others):
        if others and state_of(self)[0].would_bounce(name, self):
            return NotImplemented
        return operate(self, name, [*others, self] if swapped else [self, *others])

    return method


for name in "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift divmod".split():
    setattr(Remote, "__%s__" % name.strip("_"), forwarded(name, False))
    setattr(Remote, "__r%s__" % name.strip("_"), forwarded(name, True))
for name in (
    "eq ne lt le gt ge getitem setitem delitem contains neg pos abs invert index bool len iter next str "
    "repr format hash int float complex round reversed dir"
).split():
    setattr(Remote, "__%s__" % name, forwarded(name, False))


# Pieces.


def put_into(old, new):
    if type(old) is list or type(old) is bytearray:
        old[:] = new
    elif type(old) is dict or type(old) is set:
        old.clear()
        old.update(new)


def member(place):
    module = sys.modules.get(place[0])
    return vars(module).get(place[1]) if type(module) is types.ModuleType else None


def made(content, decoded):
    (module, name), parts = content
    parts = decoded(parts)
    if (module, name) == ("numpy", "array"):
        numpy = __import__("numpy")
        array = numpy.array(parts[1], dtype=parts[0])
        return array.reshape(parts[2]) if parts[2] is not None else array[()]
    if (module, name) not in LIBRARY:
        raise Unsupported("no value of a library: " + name)
    return getattr(__import__(module), name)(*parts)


def numpy_parts(value):
    numpy = sys.modules.get("numpy")
    if numpy is None or type(value) is not numpy.ndarray and not isinstance(value, numpy.generic):
        return None
    if value.dtype.kind not in "biufcSU":
        return None
    shape = list(value.shape) if type(value) is numpy.ndarray else None
    return [value.dtype.str, value.ravel().tolist() if shape is not None else value.item(), shape]


def is_exception(value):
    return isinstance(value, type) and issubclass(value, BaseException)


def builtin_type(name):
    kind = vars(builtins)[name]
    if not isinstance(kind, type):
        raise Unsupported("no type: " + name)
    return kind


def is_common(module):
    top = module.partition(".")[0]
    return top in sys.stdlib_module_names or top in ("numpy", "scipy", "sympy", "pandas")


def module_named(name):
    """This side's own module, where it is one that every program may have."""
    if not is_common(name):
        raise Unsupported("the tests see no module " + name)
    return __import__(name, fromlist=["*"])


def is_of_a_library(value):
    try:
        module = sys.modules.get(value.__module__)
        found = module
        for name in value.__qualname__.split("."):
            found = getattr(found, name)
        return found is value and is_common(value.__module__)
    except Exception:
        return False


def of_a_library(module, name):
    found = module_named(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def plain_of(value):
    """The value of a builtin type that `value` is equal to, if its type has none of its own to say;
    else `value`."""
    kind = type(value)
    for base in type.__dict__["__mro__"].__get__(kind):
        if base in BUILTIN_TYPES:
            return as_builtin(value, base)
        own = type.__dict__["__dict__"].__get__(base)
        if base not in DICTS and ("__eq__" in own or "__ne__" in own):
            break
    return value


def as_builtin(value, base):
    if base is int:
        return int.__add__(value, 0)
    if base is float:
        return float.__add__(value, 0.0)
    if base is str:
        return str.__str__(value)
    if base is bytes:
        return bytes.__add__(value, b"")
    if base is dict:
        return {plain_of(key): plain_of(item) for key, item in dict.items(value)}
    return (set if base is frozenset else base)([plain_of(item) for item in base.__iter__(value)])
