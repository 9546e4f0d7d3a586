"""What a session does in its jail: starts commands, and reads and changes files without following links."""
import errno
import json
import os
import signal
import stat

PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class Refused(Exception):
    pass


def main(payload, emit):
    length = int.from_bytes(payload[:4], "little")
    request = json.loads(payload[4 : 4 + length])
    content = payload[4 + length :]
    if request["operation"] == "exec":
        execute(request, emit)
        return
    try:
        found = OPERATIONS[request["operation"]](request, content)
        emit(b'{"done":true}\n' + found)
    except Refused as refusal:
        emit(json.dumps(refusal.args[0]).encode() + b"\n")
    except FileNotFoundError:
        emit(b'{"refused":"absent"}\n')
    except OSError as error:
        emit(json.dumps({"refused": "kind", "found": f"not accessible ({error.strerror})"}).encode() + b"\n")


def execute(request, emit):
    try:
        try:
            os.chdir(request["folder"])
        except PermissionError:
            # Its owner is the user of all commands.
            os.chmod(request["folder"], 0o755)
            os.chdir(request["folder"])
    except OSError:
        emit(b'{"refused":"absent"}\n')
        return
    environment = dict(os.environ)
    environment.update(request["env"])
    environment["PWD"] = request["folder"]
    for number in range(1, signal.NSIG):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            try:
                signal.signal(number, signal.SIG_DFL)
            except (OSError, ValueError):
                pass
    argv = request["argv"]
    name, code, reason = argv[0], 127, "not found"
    folders = [""] if "/" in name else environment.get("PATH", "").split(":")
    for folder in folders:
        try:
            os.execve(os.path.join(folder or ".", name) if "/" not in name else name, argv, environment)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            code, reason = 126, error.strerror
    os.write(2, f"{name}: {reason}\n".encode("utf-8", "surrogateescape"))
    os._exit(code)


def parent(request, make):
    """The folder of the path, opened without following links, and the name in it."""
    *folders, name = request["path"].split("/")
    place = os.open(request["tree"], PLACE | os.O_DIRECTORY)
    for part in folders:
        if make:
            try:
                os.mkdir(part, 0o755, dir_fd=place)
            except FileExistsError:
                pass
        following = os.open(part, PLACE, dir_fd=place)
        mode = os.fstat(following).st_mode
        if not stat.S_ISDIR(mode):
            if stat.S_ISLNK(mode) or make:
                raise Refused({"refused": "kind", "found": "below " + kind(mode)})
            raise FileNotFoundError
        os.close(place)
        place = following
    return place, name


def kind(mode):
    names = {
        stat.S_IFDIR: "a folder",
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFIFO: "a FIFO",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return names.get(stat.S_IFMT(mode), "something else")


def read(request, _):
    place, name = parent(request, False)
    found = os.open(name, PLACE, dir_fd=place)
    status = os.fstat(found)
    if not stat.S_ISREG(status.st_mode):
        raise Refused({"refused": "kind", "found": kind(status.st_mode)})
    if status.st_size > request["max"]:
        raise Refused({"refused": "size", "bytes": status.st_size})
    link = f"/proc/self/fd/{found}"
    try:
        opened = os.open(link, os.O_RDONLY)
    except PermissionError:
        # Its owner is the user of all commands.
        os.chmod(link, stat.S_IMODE(status.st_mode) | 0o400)
        try:
            opened = os.open(link, os.O_RDONLY)
        finally:
            os.chmod(link, stat.S_IMODE(status.st_mode))
    with open(opened, "rb") as file:
        return file.read(request["max"])


def write(request, content):
    place, name = parent(request, True)
    try:
        mode = os.stat(name, dir_fd=place, follow_symlinks=False).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
            raise Refused({"refused": "kind", "found": kind(mode)})
    except FileNotFoundError:
        pass
    draft = f".{os.urandom(8).hex()}.part"
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=place)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(file, view) :]
        os.fchmod(file, request["mode"] & 0o777)
        os.rename(draft, name, src_dir_fd=place, dst_dir_fd=place)
    except BaseException:
        os.unlink(draft, dir_fd=place)
        raise
    return b""


def remove(request, _):
    place, name = parent(request, False)
    mode = os.stat(name, dir_fd=place, follow_symlinks=False).st_mode
    if stat.S_ISDIR(mode):
        raise Refused({"refused": "kind", "found": kind(mode)})
    os.unlink(name, dir_fd=place)
    return b""


OPERATIONS = {"read": read, "write": write, "remove": remove}
