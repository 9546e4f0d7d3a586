

def pytest_observer(records, lines, ids):
    import pytest

    class Observer:
        """A plugin that says what happens, and has the tests that were asked for run in the order in which they
        run among all others: many a test goes by what those before it have left."""

        def __init__(self):
            self.was_collected = False
            # Files of tests that were asked for, and whether they were found without being named.
            self.files, self.seen, self.is_named = [], {}, False
            self.wanted = set(ids)
            for wanted in ids:
                file = wanted.split("::")[0]
                if file not in self.files and os.path.exists(os.path.join(ROOT, file)):
                    self.files.append(file)
            self.places = set(self.files)
            for file in self.files:
                folder = os.path.dirname(file)
                while folder and folder not in self.places:
                    # In older pytests a package is known by its `__init__.py`.
                    self.places |= {folder, folder + "/__init__.py"}
                    folder = os.path.dirname(folder)
            self.places.add("__init__.py")

        def is_aside(self, path):
            """True of what need not be looked at."""
            path = os.path.normpath(str(path))
            if not ids or not path.startswith(ROOT + os.sep):
                return None
            return None if path[len(ROOT) + 1 :].replace(os.sep, "/") in self.places else True

        if hasattr(pytest, "version_tuple"):

            def pytest_ignore_collect(self, collection_path):
                return self.is_aside(collection_path)

        else:  # Before 7.

            def pytest_ignore_collect(self, path):
                return self.is_aside(path)

        def unseen(self):
            """Files that have to be named to be found."""
            return [] if self.is_named else [file for file in self.files if file not in self.seen]

        def named(self):
            """All files that were asked for, in their order as far as it is known."""
            self.is_named, self.was_collected = True, False
            seen = [name for name in self.seen if name in self.files]
            return seen + [file for file in self.files if file not in seen]

        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, session, config, items):
            self.was_collected = True
            if not ids:
                return
            if self.unseen():
                items[:] = []
                return

            def is_wanted(name):
                while name and name not in self.wanted:
                    if name.endswith("]") and "[" in name:
                        name = name[: name.index("[")]
                    else:
                        name = name.rpartition("::")[0]
                return bool(name)

            dropped = [item for item in items if not is_wanted(item.nodeid)]
            items[:] = [item for item in items if is_wanted(item.nodeid)]
            if dropped:
                config.hook.pytest_deselected(items=dropped)

        def concerned(self, name):
            """A collector, and the tests that were asked for and lie in it."""
            return [name] + [wanted for wanted in ids if name and wanted.startswith(name + "::")]

        def pytest_collectreport(self, report):
            self.seen.setdefault(report.nodeid)
            if report.failed or (report.skipped and report.nodeid):
                for name in self.concerned(report.nodeid):
                    records.say("status", readable(name), "error" if report.failed else "skipped")

        def pytest_exception_interact(self, node, call, report):
            error, traceback = call.excinfo.value, call.excinfo.tb
            if type(error).__name__ == "CollectError" and error.__cause__ is not None:
                error = error.__cause__
                traceback = error.__traceback__
            told = described(error, traceback)
            is_test = hasattr(report, "when")
            for name in [report.nodeid] if is_test else self.concerned(report.nodeid):
                records.say("failure", readable(name), *told)

        def pytest_runtest_logstart(self, nodeid, location):
            if lines is not None:
                records.say("lines", "", lines.take())
            records.say("start", readable(nodeid))

        def pytest_runtest_logreport(self, report):
            status = None
            if report.failed:
                status = "failed" if report.when == "call" else "error"
            elif report.skipped:
                status = "expected_failure" if hasattr(report, "wasxfail") else "skipped"
            elif report.when == "call":
                status = "passed"
            if status is None:
                return
            name = readable(report.nodeid)
            records.say("status", name, status)
            if not report.failed:
                return
            text = report.longrepr
            if isinstance(text, str) and text.startswith(("[XPASS", "Unexpected success")):
                records.say("failure", name, "UnexpectedSuccess", readable(text), [])
            for title, text in report.sections:
                if title.startswith("Captured std"):
                    records.say("printed", readable(text))

        def pytest_runtest_logfinish(self, nodeid, location):
            if lines is not None:
                records.say("lines", readable(nodeid), lines.take())
            records.say("stop", readable(nodeid))

    return Observer()


def pytest_warm():
    """Imports what every run of pytest imports."""
    import pytest
    import _pytest.config

    for name in getattr(_pytest.config, "default_plugins", ()):
        try:
            importlib.import_module("_pytest." + name)
        except ImportError:
            pass
    return pytest


def pytest_reads(compiled):
    """Has rewritten tests kept by their content: pytest's own byte code of them lies in the work tree and
    is believed by time and size."""
    import _pytest.assertion.rewrite as rewrite

    made = getattr(rewrite, "_rewrite_test", None)
    if made is None or not hasattr(rewrite, "_read_pyc"):
        return

    def rewrite_test(*arguments):
        path = next(str(part) for part in arguments if isinstance(part, (str, os.PathLike)))
        with open(path, "rb") as file:
            data = file.read()
        return os.stat(path), compiled.of(path, data, lambda: made(*arguments)[1], b"rewritten")

    rewrite._rewrite_test = rewrite_test
    rewrite._read_pyc = lambda *_, **__: None


def pytest_run(request, records, lines, compiled, folder):
    import pytest

    pytest_reads(compiled)
    observer = pytest_observer(records, lines, request["ids"])
    options = ["-q", "--tb=no", "--color=no", "-p", "no:cacheprovider", "--rootdir=" + ROOT]
    options += ["--basetemp=" + os.path.join(folder, "pytest"), "--continue-on-collection-errors"]
    if request["stop"]:
        options.append("--maxfail=1")
    if request["ids"] and not observer.files:
        return

    def run(targets):
        # What a repository's configuration asks for may be in plugins that are installed, or not here at all.
        for attempt in ("alone", "with plugins", "without options"):
            if attempt == "with plugins":
                os.environ.pop("PYTEST_DISABLE_PLUGIN_AUTOLOAD", None)
            extra = ["-o", "addopts="] if attempt == "without options" else []
            code = int(pytest.main(options + extra + targets, plugins=[observer]))
            if code != 4 or observer.was_collected:
                return code
        return code

    code = run([])
    if observer.was_collected and observer.unseen():
        # They lie outside of what is looked through for tests, or are not called as tests are.
        code = run(observer.named())
    if code in (3, 4):
        records.say("broken", "pytest ended with the exit code {}".format(code))
