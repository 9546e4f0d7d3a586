"""The warm interpreter of a slot: forks one child per run.

Started as `python3 -s -c <this> <setup>`. Its parent, the slot, sends one message per run on
descriptor 3 with the run's descriptors, and gets back how the child ended. Foreign code runs in
children only, behind the walls that `lock_in` puts up.
"""
import _socket
import builtins
import ctypes
import fcntl
import gc
import json
import mmap
import os
import resource
import signal
import struct
import sys
import types

SCRIPT, HARNESS, EXEC = 0, 1, 2
REQUEST = struct.Struct("<BIQQQQQQQQ")
REPLY = struct.Struct("<iQQQ")
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWPID = 0x20000, 0x4000000, 0x8000000, 0x20000000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP = 1, 4, 22
PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 38, 47
SECCOMP_MODE_FILTER, PR_CAP_AMBIENT_CLEAR_ALL = 2, 4
# Signals by which a child says why it ended; see `run.rs`.
OUT_OF_MEMORY, OUT_OF_DISK = signal.SIGRTMIN + 7, signal.SIGRTMIN + 8
# Variables that a warm interpreter has read already.
READ_AT_START = ("PYTHON", "LD_", "GLIBC_TUNABLES", "MALLOC_")
# Above what programs reach by chance when they write to or close every descriptor.
RESULT_FD = 900

libc = ctypes.CDLL(None, use_errno=True)
libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
libc.syscall.restype = ctypes.c_long


def check(returned, what):
    if returned < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


class Walls:
    """What separates a run from the zygote, prepared once."""

    def __init__(self, setup):
        self.home = setup["home"]
        self.landlock = setup["landlock"]
        self.restrict_self = setup["landlock_restrict_self"]
        self.capset = setup["capset"]
        self.first_to_go = setup["first_to_go"]
        if setup["same_user"]:
            # Programs are the same user, and might look into this process otherwise.
            check(libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl")
        self.most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        self.instructions = bytes(setup["filter"])
        self.filter = Filter(len(self.instructions) // 8, self.instructions)
        self.no_capabilities = (
            struct.pack("<II", 0x20080522, 0),
            struct.pack("<IIIIII", 0, 0, 0, 0, 0, 0),
        )

    def lock_in(self, limits, namespaces):
        check(libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), "prctl")
        if self.first_to_go:
            # Out of memory, the kernel ends a run rather than this interpreter.
            fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
            os.write(fd, b"1000")
            os.close(fd)
        if namespaces is not None:
            check(libc.setns(namespaces, CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC), "setns")
        else:
            check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
        os.chdir(self.home)
        os.setsid()
        for kind, limit in limits:
            resource.setrlimit(kind, limit)
        libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
        check(libc.syscall(self.capset, *self.no_capabilities), "capset")
        check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
        if self.landlock is not None:
            check(libc.syscall(self.restrict_self, self.landlock, 0), "landlock_restrict_self")
        address = ctypes.addressof(self.filter)
        check(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, address, 0, 0), "seccomp")


def serve(setup):
    walls = Walls(setup)
    harnesses = {}
    for module in setup["preload"]:
        load(module)
    wanted = setup["wanted"]
    if wanted and not any([load(module) for module in wanted]):
        sys.exit(f"none of these modules is installed: {wanted}")
    sys.path[:] = [path for path in sys.path if path]
    sys.dont_write_bytecode = True
    socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, 3)
    # What the child tells about its preparation; out of its reach before foreign code starts.
    progress = mmap.mmap(-1, 4096)
    gc.collect()
    gc.freeze()
    gc.disable()
    socket.send(b"ready " + "{}.{}.{}".format(*sys.version_info[:3]).encode())
    while True:
        message, ancillary, _, _ = socket.recvmsg(256, _socket.CMSG_SPACE(32))
        if not message:
            os._exit(0)
        fds = []
        for _, _, data in ancillary:
            fds.extend(struct.unpack(f"<{len(data) // 4}i", data))
        progress[:256] = b"\0" * 256
        try:
            reply = start_run(walls, harnesses, message, fds, progress)
        except BaseException as error:
            reply = REPLY.pack(-1, 0, 0, 0) + repr(error).encode()[:200]
        for fd in fds:
            os.close(fd)
        socket.send(reply)


def load(module):
    try:
        __import__(module)
    except ImportError:
        return False
    return True


def start_run(walls, harnesses, message, fds, progress):
    kind, cpu, memory, disk, files, processes, *lengths = REQUEST.unpack(message)
    source_length, payload_length, arguments_length, environment_length = lengths
    stdin, stdout, stderr, content, result = fds[:5]
    namespaces = fds[5] if len(fds) > 5 else None
    harness = None
    if kind == HARNESS:
        harness = prepare(harnesses, os.pread(content, source_length, 0))
    if namespaces is not None:
        check(libc.setns(namespaces, CLONE_NEWPID), "setns of the pid namespace")
    pid = os.fork()
    if pid:
        # The child's copies are the only ones that keep its streams open.
        while fds:
            os.close(fds.pop())
        _, status, usage = os.wait4(pid, 0)
        if progress[0:1] != b"R":
            return REPLY.pack(-1, 0, 0, 0) + bytes(progress[1:200]).rstrip(b"\0")
        user, system = int(usage.ru_utime * 1e6), int(usage.ru_stime * 1e6)
        return REPLY.pack(status, user, system, usage.ru_maxrss)
    try:
        source = b"" if kind == HARNESS else os.pread(content, source_length, 0)
        payload = os.pread(content, payload_length, source_length) if payload_length else b""
        arguments, variables, at = [], [], source_length + payload_length
        if arguments_length:
            arguments = os.fsdecode(os.pread(content, arguments_length, at)).split("\0")[:-1]
        if environment_length:
            text = os.pread(content, environment_length, at + arguments_length)
            variables = [text.split("=", 1) for text in os.fsdecode(text).split("\0")[:-1]]
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        if kind == HARNESS:
            result = fcntl.fcntl(result, fcntl.F_DUPFD_CLOEXEC, RESULT_FD)
        files = min(files, walls.most_files)
        limits = [
            (resource.RLIMIT_CPU, (cpu, cpu + 1)),
            (resource.RLIMIT_FSIZE, (disk, disk)),
            (resource.RLIMIT_CORE, (0, 0)),
            (resource.RLIMIT_NOFILE, (files, files)),
        ]
        if processes:
            limits.append((resource.RLIMIT_NPROC, (processes, processes)))
        if memory:
            limits.append((resource.RLIMIT_AS, (memory, memory)))
        walls.lock_in(limits, namespaces)
        os.closerange(3, RESULT_FD)
        if kind != HARNESS:
            os.closerange(RESULT_FD, RESULT_FD + 16)
        progress[0:1] = b"R"
        progress.close()
    except BaseException as error:
        try:
            text = repr(error).encode()[:190]
            progress[1 : 1 + len(text)] = text
        finally:
            os._exit(127)
    gc.enable()
    if "random" in sys.modules:
        sys.modules["random"].seed(0)
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed(0)
    if variables:
        os.environ.update(variables)
        if "TZ" in os.environ and "time" in sys.modules:
            sys.modules["time"].tzset()
    if kind == SCRIPT:
        cold = any(name.startswith(READ_AT_START) for name, _ in variables)
        run_script(source, arguments, cold)
    elif kind == HARNESS:
        sys.argv = ["harness", *arguments]
        run_harness(harness, payload, result)
    else:
        run_executable(arguments)


def prepare(harnesses, source):
    """The `main` of a trusted harness; executed once, before any foreign code."""
    main = harnesses.get(source)
    if main is None:
        # Builtins of its own, which foreign code does not patch by chance.
        space = {"__name__": "harness", "__builtins__": dict(vars(builtins))}
        exec(compile(source, "<harness>", "exec", dont_inherit=True), space)
        gc.collect()
        gc.freeze()
        main = harnesses[source] = space["main"]
    return main


def run_harness(main, payload, result):
    write, leave = os.write, os._exit

    def emit(data):
        while data:
            data = data[write(result, data) :]

    code = 0
    try:
        main(payload, emit)
    except BaseException as error:
        code = report(error)
    leave(code)


def run_script(source, arguments, cold):
    path = os.path.join(os.getcwd(), "main.py")
    code = 0
    try:
        fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
        written = 0
        while written < len(source):
            written += os.write(fd, memoryview(source)[written:])
        os.close(fd)
        if cold:
            run_executable([sys.executable, path, *arguments])
        module = types.ModuleType("__main__")
        module.__dict__.update(__builtins__=builtins, __file__=path)
        sys.modules["__main__"] = module
        sys.argv = [path, *arguments]
        sys.path.insert(0, os.path.dirname(path))
        code_object = compile(source, path, "exec", dont_inherit=True)
        del source
        exec(code_object, module.__dict__)
    except BaseException as error:
        code = report(error)
    finish(code)


def finish(code):
    """What the interpreter does between the end of a program and the end of its process."""
    import atexit

    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()
        atexit._run_exitfuncs()
    except BaseException as error:
        code = report(error)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException as error:
            code = code or report(error) or 120
    os._exit(code if code is not None else 0)


def report(error):
    """The exit code of an uncaught exception, which is printed as the interpreter does."""
    if isinstance(error, SystemExit):
        code = error.code
        if code is None:
            return 0
        if isinstance(code, int):
            return code & 0xFF
        say(str(code) + "\n")
        return 1
    reason = None
    if isinstance(error, MemoryError):
        reason = OUT_OF_MEMORY
    elif isinstance(error, OSError) and error.errno in (27, 28):
        reason = OUT_OF_DISK
    try:
        import traceback

        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == "<string>":
            trace = trace.tb_next
        say("".join(traceback.format_exception(type(error), error, trace)))
    except BaseException:
        say(type(error).__name__ + "\n")
    if reason is not None:
        try:
            sys.stdout.flush()
        except BaseException:
            pass
        os.kill(os.getpid(), reason)
    return 1


def say(text):
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except BaseException:
        pass


def run_executable(arguments):
    for number in range(1, signal.NSIG):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            try:
                signal.signal(number, signal.SIG_DFL)
            except (OSError, ValueError):
                pass
    try:
        os.execv(arguments[0], arguments)
    except OSError as error:
        say(f"{arguments[0]}: {error}\n")
        os._exit(127)


serve(json.loads(sys.argv[1]))
