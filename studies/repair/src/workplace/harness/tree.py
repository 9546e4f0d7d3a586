"""Runs requests of tests, each in an interpreter forked for it, and says as lines of JSON what came of them."""
import importlib.machinery
import json
import marshal
import os
import re
import signal
import sys
import time

ROOT = os.path.realpath(os.getcwd())
INSTALLED = {"site-packages", "dist-packages", "node_modules"}
MESSAGE, FRAMES = 2000, 40
# Of objects that say nothing else of themselves; another one in every run.
ADDRESS = re.compile(r"\bat 0x[0-9a-f]{6,}")
# Tests may put others in the place of these.
open_file, write_file, close_file, own_number = os.open, os.write, os.close, os.getpid
monotonic = time.monotonic
known_paths = {}


def relative(name):
    """Where a file lies below the work tree; None for one that is not of its own sources."""
    try:
        return known_paths[name]
    except KeyError:
        pass
    found = None
    if not name.startswith("<"):
        path = os.path.join(ROOT, name)
        if not path.startswith(ROOT + os.sep):
            path = os.path.realpath(path)
        path = os.path.normpath(path)
        if path.startswith(ROOT + os.sep):
            found = path[len(ROOT) + 1 :].replace(os.sep, "/")
            folders = found.split("/")[:-1]
            if any(part in INSTALLED or part.startswith(".") for part in folders):
                found = None
    known_paths[name] = found
    return found


def readable(value, limit=MESSAGE):
    """The text of anything, without halves of characters and not longer than is worth reading."""
    try:
        text = str(value)
    except BaseException as error:
        text = "<its text cannot be made: {}>".format(type(error).__name__)
    if len(text) > limit:
        text = text[: limit * 2 // 3] + " [...] " + text[-limit // 3 :]
    return text.encode("utf-8", "replace").decode("utf-8")


def described(error, traceback):
    """An exception as kind, message and frames inside the work tree, the outermost first."""
    frames = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        path = relative(code.co_filename)
        if path is not None:
            frames.append([path, traceback.tb_lineno, code.co_name])
        traceback = traceback.tb_next
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        path = relative(str(error.filename))
        if path is not None:
            frames.append([path, int(error.lineno), "<module>"])
    if len(frames) > FRAMES:
        frames = frames[: FRAMES // 4] + frames[-(FRAMES - FRAMES // 4) :]
    return [type(error).__name__, ADDRESS.sub("at 0x...", readable(error)), frames]


class Records:
    """What a test run says, line by line in a file that is opened anew for each, so that no test closes it."""

    def __init__(self, path):
        self.path = path
        self.process = own_number()

    def say(self, *record):
        if own_number() != self.process:
            return  # A test has forked, and its child goes on here.
        data = (json.dumps(record) + "\n").encode()
        file = open_file(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            while data:
                data = data[write_file(file, data) :]
        finally:
            close_file(file)


class Lines:
    """Which lines of the work tree's own sources run, between one `take` and the next.

    Interpreters before 3.12 are slowed manifold by being asked at every line and call. There, until the next `take`,
    the lines of a function are not looked at after so many events in it that told nothing new, and nothing is after
    so many calls."""

    LINES, CALLS = 500_000, 5_000_000

    def __init__(self):
        self.seen = set()
        self.monitoring = getattr(sys, "monitoring", None)
        if self.monitoring is None:
            self.trace()
            return
        events = self.monitoring.events
        self.tool = 4
        self.monitoring.use_tool_id(self.tool, "lines of tests")
        self.monitoring.register_callback(self.tool, events.PY_START, self.started)
        self.monitoring.register_callback(self.tool, events.LINE, self.reached)
        self.monitoring.set_events(self.tool, events.PY_START)

    def trace(self):
        import threading

        # By code object, events that told nothing new.
        self.known, self.calls = {}, 0
        threading.settrace(self.called)
        sys.settrace(self.called)

    def called(self, frame, event, argument):
        code = frame.f_code
        if relative(code.co_filename) is not None and self.known.get(code, 0) < self.LINES:
            return self.stepped
        self.calls += 1
        if self.calls > self.CALLS:
            sys.settrace(None)
        return None

    def stepped(self, frame, event, argument):
        if event == "line":
            code = frame.f_code
            line = (code.co_filename, frame.f_lineno)
            if line not in self.seen:
                self.seen.add(line)
                self.known[code] = self.calls = 0
            else:
                known = self.known[code] = self.known.get(code, 0) + 1
                if known >= self.LINES:
                    # To return nothing would leave the frame as it is.
                    frame.f_trace_lines = False
        return self.stepped

    def started(self, code, offset):
        if relative(code.co_filename) is not None:
            self.monitoring.set_local_events(self.tool, code, self.monitoring.events.LINE)
        return self.monitoring.DISABLE

    def reached(self, code, line):
        self.seen.add((code.co_filename, line))
        return self.monitoring.DISABLE

    def take(self):
        """By path: runs of lines as [first, last, first, last, ...]."""
        seen, self.seen = self.seen, set()
        if self.monitoring is not None:
            self.monitoring.restart_events()
        else:
            self.trace()
        runs = {}
        for name, line in sorted(seen):
            path = relative(name)
            found = runs.setdefault(path, [])
            if found and line == found[-1] + 1:
                found[-1] = line
            elif not found or line > found[-1]:
                found.extend([line, line])
        return runs


class Limit:
    """How long one test may take: an exception is raised in one that takes longer, so that its frames tell where it
    was. Once a test has not ended, no other is waited for as long. Code that never comes back to the interpreter is
    not reached, nor are tests that use the same signal."""

    LEAST, TIMES = 5.0, 8.0

    def __init__(self, seconds):
        self.seconds = seconds
        self.longest, self.begun = 0.0, None
        self.has_passed = self.was_reached = False

    def begin(self):
        self.begun, self.has_passed = monotonic(), False
        if self.seconds is None:
            return
        limit = self.seconds
        if self.was_reached:
            limit = min(limit, max(self.LEAST, self.TIMES * self.longest))
        signal.signal(signal.SIGALRM, self.reached)
        # Again and again: a test may catch whatever is raised in it.
        signal.setitimer(signal.ITIMER_REAL, limit, max(1.0, limit))

    def end(self):
        begun, self.begun = self.begun, None
        if self.seconds is not None:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        if begun is not None and not self.has_passed:
            self.longest = max(self.longest, monotonic() - begun)

    def reached(self, number, frame):
        if self.begun is None:
            return
        self.has_passed = self.was_reached = True
        raise Timeout("the test did not end in time")


class Timeout(BaseException):
    """Nothing that programs handle."""


class Sources(importlib.machinery.SourceFileLoader):
    """Modules of the work tree, compiled from what stands there now: byte code that lies about may be of
    files as they were before."""

    compiled = None

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        data = self.get_data(path)
        return self.compiled.of(path, data, lambda: self.source_to_code(data, path))


class Compiled:
    """Byte code of sources by their content, in a folder that all requests share."""

    def __init__(self, folder):
        import hashlib

        self.folder = folder
        self.digest = hashlib.sha256

    def of(self, path, data, compile_it, kind=b"plain"):
        key = self.digest(kind + b"\0" + os.fsencode(path) + b"\0" + data).hexdigest()
        place = os.path.join(self.folder, key)
        try:
            with open(place, "rb") as file:
                return marshal.loads(file.read())
        except (OSError, EOFError, ValueError, TypeError):
            code = compile_it()
        draft = "{}.{}".format(place, own_number())
        try:
            with open(draft, "wb") as file:
                file.write(marshal.dumps(code))
            os.rename(draft, place)
        except (OSError, ValueError):
            pass
        return code

    def install(self):
        """Has modules of the work tree read through this, whoever imports them."""
        machinery = importlib.machinery
        loader = type("TreeSources", (Sources,), {"compiled": self})
        loaders = [
            (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
            (loader, machinery.SOURCE_SUFFIXES),
            (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
        ]

        def hook(path):
            place = os.path.realpath(path or ".")
            if place != ROOT and not place.startswith(ROOT + os.sep):
                raise ImportError("not of the work tree")
            if not os.path.isdir(place):
                raise ImportError("not a folder")
            return machinery.FileFinder(path, *loaders)

        sys.path_hooks.insert(0, hook)
        for path in list(sys.path_importer_cache):
            place = os.path.realpath(path)
            if place == ROOT or place.startswith(ROOT + os.sep):
                del sys.path_importer_cache[path]


def import_places():
    """Where modules of the work tree are found."""
    source = os.path.join(ROOT, "src")
    return [ROOT, source] if os.path.isdir(source) else [ROOT]


def provided(names):
    """Those of some top-level modules that the work tree has its own of, or that were read from it."""
    found = set()
    for name in names:
        for place in import_places():
            if os.path.isfile(os.path.join(place, name + ".py")) or os.path.isfile(
                os.path.join(place, name, "__init__.py")
            ):
                found.add(name)
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and name != "__main__" and relative(file) is not None:
            found.add(name.split(".")[0])
    return found
