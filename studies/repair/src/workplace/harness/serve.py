

RUNNERS = {"pytest": pytest_run, "unittest": unittest_run}
# What tests import most: where the first run of several has, it is read once for the others, as plugins are.
USUAL = ["datetime", "decimal", "inspect", "logging", "pathlib", "random", "tempfile", "textwrap", "unittest.mock"]


def child(request, framework, folder, compiled, output):
    """One run of tests, in a process and a session of its own; never returns."""
    code = 1
    try:
        os.setsid()
        import resource

        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        seconds = max(1, int(request["cpu"]) + 1)
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        if most == resource.RLIM_INFINITY or most > seconds:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, most))
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        os.closerange(3, 256)
        records = Records(os.path.join(folder, "records"))
        if compiled.foreign:
            for name in list(sys.modules):
                if name.split(".")[0] in compiled.foreign:
                    del sys.modules[name]
        for place in reversed(import_places()):
            while place in sys.path:
                sys.path.remove(place)
            sys.path.insert(0, place)
        if len(import_places()) > 1:
            inherited = os.environ.get("PYTHONPATH")
            os.environ["PYTHONPATH"] = os.pathsep.join(import_places() + ([inherited] if inherited else []))
        sys.dont_write_bytecode = True
        sys.argv[:] = [framework]
        compiled.install()
        if "random" in sys.modules:
            sys.modules["random"].seed(0)
        lines = Lines() if request["trace"] else None
        limit = Limit(request["each"])
        RUNNERS[framework](request, records, lines, compiled, folder, limit)
        if lines is not None:
            records.say("lines", "", lines.take())
        records.say("longest", limit.longest)
        records.say("used", *[name for name in USUAL if name in sys.modules])
        records.say("end")
        code = 0
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


class Kept:
    """The beginning and the end of what was printed."""

    def __init__(self, limit):
        self.limit = limit
        self.head, self.tail, self.total = b"", b"", 0

    def add(self, data):
        self.total += len(data)
        room = self.limit - len(self.head)
        self.head += data[:room] if room > 0 else b""
        self.tail = (self.tail + data[max(room, 0) :])[-self.limit :]

    def text(self):
        dropped = self.total - len(self.head) - len(self.tail)
        middle = b"\n[%d bytes dropped]\n" % dropped if dropped > 0 else b""
        return (self.head + middle + self.tail).decode("utf-8", "replace")


def end(process):
    """Ends a process, also where a sandbox lets nobody send SIGKILL: by signals that hardly any program
    handles."""
    try:
        os.kill(process, signal.SIGKILL)
    except PermissionError:
        for number in (signal.SIGSYS, signal.SIGVTALRM, signal.SIGPWR, signal.SIGQUIT, signal.SIGCONT):
            try:
                os.kill(process, number)
            except OSError:
                pass
    except OSError:
        pass


def descendants():
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/{}/stat".format(name)) as file:
                    parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                pass
    below, found = {os.getpid()}, True
    while found:
        found = {number for number, parent in parents.items() if parent in below} - below
        below |= found
    return below - {os.getpid()} - stopped


# Processes that nothing ended. They are stopped, and end with the session's command.
stopped = set()


def end_descendants():
    """Ends what a run has left behind, as far as it is below this process."""
    for patience in (0.0, 0.001, 0.002, 0.005, 0.01, 0.05, 0.2, 0.5, 0.5):
        time.sleep(patience)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except OSError:
            pass
        left = descendants()
        if not left:
            return
        for process in left:
            end(process)
    for process in left:
        stopped.add(process)
        try:
            os.kill(process, signal.SIGSTOP)
        except OSError:
            pass


def adopt_orphans():
    """Has processes whose parents have died become children of this one, where the system can."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass


def attended(process, output, wake, wall, kept):
    """Waits for a child and reads what it prints. Gives its status; None for one that had to be ended."""
    import select

    os.set_blocking(output, False)
    deadline = time.monotonic() + wall
    status = None
    while status is None:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        ready = select.select([output, wake], [], [], left)[0]
        if output in ready:
            drain(output, kept)
        if wake in ready:
            os.read(wake, 4096)
            done, told = os.waitpid(process, os.WNOHANG)
            if done:
                status = told
    end_descendants()
    drain(output, kept)
    return status


def drain(output, kept):
    try:
        for _ in range(64):
            data = os.read(output, 65536)
            if not data:
                return
            kept.add(data)
    except OSError:
        pass


def outcome(path, status, kept):
    """What the records of a run come to."""
    statuses, failures, lines, printed, used = {}, {}, {}, [], []
    running, ended, why, again, longest = None, "crashed", None, False, 0.0
    try:
        with open(path, encoding="utf-8") as file:
            records = file.read().split("\n")
    except OSError:
        records = []
    for record in records:
        try:
            kind, *rest = json.loads(record)
        except ValueError:
            continue
        if kind == "start":
            running = rest[0]
        elif kind == "stop":
            running = None
        elif kind == "status":
            name, found = rest
            worse = ["skipped", "passed", "expected_failure", "failed", "error"]
            if name not in statuses or worse.index(found) >= worse.index(statuses[name]):
                statuses[name] = found
        elif kind == "failure":
            failures.setdefault(rest[0], rest[1:])
        elif kind == "lines":
            paths = lines.setdefault(rest[0], {})
            for name, runs in rest[1].items():
                paths.setdefault(name, []).append(runs)
        elif kind == "printed":
            printed.append(rest[0])
        elif kind == "used":
            used += [name for name in rest if isinstance(name, str)]
        elif kind == "longest":
            longest = rest[0] if isinstance(rest[0], float) else 0.0
        elif kind == "again":
            again = True
        elif kind == "broken":
            why = rest[0]
        elif kind == "end":
            ended = "finished"
    if why is not None:
        ended = "crashed"
    elif ended != "finished":
        spent = status is not None and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU
        if status is None or spent:
            ended, why = "timed_out", "did not end in time"
        elif os.WIFSIGNALED(status):
            why = "was ended by the signal {}".format(os.WTERMSIG(status))
        else:
            why = "left with the exit code {}".format(os.WEXITSTATUS(status))
        if running is not None:
            statuses.pop(running, None)
            kind = "Timeout" if ended == "timed_out" else "Crash"
            failures[running] = [kind, "the interpreter " + why, []]
    for text in printed:
        kept.add(text.encode("utf-8", "replace"))
    if why is not None and running is None:
        kept.add(("\n[" + why + "]\n").encode())
    return {
        "ended": ended,
        "statuses": statuses,
        "order": list(statuses),
        "failures": failures,
        "lines": lines,
        "output": kept.text(),
        "longest": longest,
        "used": used,
        "again": again,
    }


class Blocked(Exception):
    """A file of the work tree that cannot be written."""


def present(path):
    """What stands at a path of the work tree: nothing, a link or a file, each as it can be put back."""
    import stat

    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Blocked("{}: {}".format(path, error.strerror))
    if stat.S_ISLNK(found.st_mode):
        return {"link": os.readlink(path)}
    if not stat.S_ISREG(found.st_mode):
        raise Blocked("{}: it is not a regular file".format(path))
    with open(path, "rb") as file:
        return {"data": file.read(), "mode": stat.S_IMODE(found.st_mode), "times": [found.st_atime_ns, found.st_mtime_ns]}


def put(path, state):
    """Makes a path what `state` says, whatever stands there. Gives the folders that had to be made."""
    made = []
    folder = os.path.dirname(path)
    if not (os.path.realpath(folder) + os.sep).startswith(ROOT + os.sep):
        raise Blocked("{}: a link leads out of the work tree".format(path))
    while not os.path.isdir(folder):
        made.append(folder)
        folder = os.path.dirname(folder)
    for folder in reversed(made):
        os.mkdir(folder)
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    if state is None:
        return made
    if "link" in state:
        os.symlink(state["link"], path)
        return made
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(file, "wb") as opened:
        opened.write(state["data"])
    os.chmod(path, state["mode"])
    if "times" in state:
        os.utime(path, ns=tuple(state["times"]))
    return made


def listed():
    """Everything in the work tree, without what is in it: its kind, permissions, size and time."""
    import stat

    found, folders = {}, [ROOT]
    while folders:
        try:
            entries = list(os.scandir(folders.pop()))
        except OSError:
            continue
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            mode = status.st_mode
            if stat.S_ISDIR(mode):
                found[entry.path] = (mode, 0, 0)
                if entry.name != ".git":
                    folders.append(entry.path)
            else:
                found[entry.path] = (mode, status.st_size, status.st_mtime_ns)
    return found


def tidied(before):
    """Removes what tests have left in the work tree and gives permissions back. True if all is as it was: what
    tests have changed inside files or removed cannot be put back here."""
    import shutil
    import stat

    for _ in range(8):
        after = listed()
        if after == before:
            return True
        changed = False
        for path in sorted(set(after) - set(before), key=len):
            changed = True
            try:
                shutil.rmtree(path) if stat.S_ISDIR(after[path][0]) else os.unlink(path)
            except OSError:
                pass
        for path in set(after) & set(before):
            mode = before[path][0]
            if after[path][0] != mode and stat.S_IFMT(after[path][0]) == stat.S_IFMT(mode):
                changed = True
                try:
                    os.chmod(path, stat.S_IMODE(mode))
                except OSError:
                    pass
        if not changed:
            break
    return False


def served(number, request, framework, folder, compiled, wake, keep):
    """Writes the request's files, runs its tests, and puts the files back."""
    import base64
    import shutil

    before, made = [], []
    try:
        for name, content in sorted(request["writes"].items()):
            path = os.path.join(ROOT, name)
            state = present(path)
            before.append((path, state))
            if content is None:
                made += put(path, None)
                continue
            data = {"data": base64.b64decode(content), "mode": 0o644}
            if state is not None and "mode" in state:
                # Another time than the file had: interpreters that tests start go by it.
                later = state["times"][1] + (2 + number) * 10**9
                data = dict(data, mode=state["mode"], times=[later, later])
            made += put(path, data)
        begun = time.monotonic()
        for plugins in (True,) if request["plugins"] else (False, True):
            os.mkdir(folder)
            kept = Kept(keep)
            output, theirs = os.pipe()
            process = os.fork()
            if process == 0:
                child(dict(request, plugins=plugins), framework, folder, compiled, theirs)
            os.close(theirs)
            left = request["wall"] - (time.monotonic() - begun)
            status = attended(process, output, wake, left, kept)
            os.close(output)
            found = outcome(os.path.join(folder, "records"), status, kept)
            if not found.pop("again"):
                break
            shutil.rmtree(folder, ignore_errors=True)
        return dict(found, plugins=plugins, seconds=time.monotonic() - begun)
    except (Blocked, OSError) as error:
        kept = Kept(keep)
        kept.add(str(error).encode())
        return dict(outcome(os.devnull, 0, kept), seconds=0.0)
    finally:
        for path, state in reversed(before):
            put(path, state)
        for place in sorted(made, key=len, reverse=True):
            shutil.rmtree(place, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


def originals(requests):
    """What stands at all paths that requests write, for whoever must put it back should this process die."""
    import base64

    found = {}
    for request in requests:
        for name in request["writes"]:
            try:
                state = present(os.path.join(ROOT, name))
            except (Blocked, OSError):
                continue
            if state is not None and "data" in state:
                state = {"data": base64.b64encode(state["data"]).decode(), "mode": state["mode"]}
            found[name] = state
    return found


def main():
    import shutil
    import tempfile

    sys.path[:] = [path for path in sys.path if path]
    cold = os.environ.pop("ETUDE_TESTS_COLD", None)
    framework = sys.argv[1]
    out = os.dup(1)

    def tell(record):
        data = (json.dumps(record) + "\n").encode()
        while data:
            data = data[os.write(out, data) :]

    try:
        if cold is None:
            pytest_warm() if framework == "pytest" else importlib.import_module("unittest")
    except ImportError as error:
        tell({"absent": readable(error), "interpreter": sys.executable})
        return
    foreign = provided({name.split(".")[0] for name in sys.modules} - {"__main__"})
    if foreign and cold is None:
        # The work tree is, or has, what the framework is made of: nothing of it may be here already.
        os.environ["ETUDE_TESTS_COLD"] = "1"
        os.execv(sys.executable, [sys.executable, "-c", START, SOURCE, START, framework])
    job = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    requests = job["requests"]
    adopt_orphans()
    scratch = tempfile.mkdtemp(prefix="tests-")
    os.mkdir(os.path.join(scratch, "compiled"))
    compiled = Compiled(os.path.join(scratch, "compiled"))
    compiled.foreign = foreign
    wake, waker = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(waker, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker)
    tell({"originals": originals(requests)})
    tree = listed()
    for number, request in enumerate(requests):
        tell({"begun": number})
        folder = os.path.join(scratch, str(number))
        found = served(number, request, framework, folder, compiled, wake, job["keep"] // 2)
        used = found.pop("used")
        if number == 0 and len(requests) > 1 and cold is None:
            for name in used:
                try:
                    importlib.import_module(name)
                except Exception:
                    pass  # It is of the work tree.
            compiled.foreign |= provided({name.split(".")[0] for name in sys.modules} - {"__main__"})
        tell({"done": number, "run": found, "tidy": tidied(tree)})
    shutil.rmtree(scratch, ignore_errors=True)


main()
