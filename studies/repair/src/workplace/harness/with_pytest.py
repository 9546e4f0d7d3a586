

def pytest_observer(records, lines, ids):
    import pytest

    class Observer:
        """A plugin that says what happens, and keeps the tests that were asked for, in their order."""

        was_collected = False

        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, session, config, items):
            self.was_collected = True
            if not ids:
                return
            order = {}
            for number, wanted in enumerate(ids):
                order.setdefault(wanted, number)

            def place(name):
                while name:
                    if name in order:
                        return order[name]
                    if name.endswith("]") and "[" in name:
                        name = name[: name.index("[")]
                    else:
                        name = name.rpartition("::")[0]
                return None

            placed = [(place(item.nodeid), item) for item in items]
            kept = [pair for pair in placed if pair[0] is not None]
            kept.sort(key=lambda pair: pair[0])
            items[:] = [item for _, item in kept]
            dropped = [item for number, item in placed if number is None]
            if dropped:
                config.hook.pytest_deselected(items=dropped)

        def concerned(self, name):
            """A collector, and the tests that were asked for and lie in it."""
            return [name] + [wanted for wanted in ids if name and wanted.startswith(name + "::")]

        def pytest_collectreport(self, report):
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
    files = []
    for wanted in request["ids"]:
        file = wanted.split("::")[0]
        if file not in files and os.path.exists(os.path.join(ROOT, file)):
            files.append(file)
    if request["ids"] and not files:
        return
    # What a repository's configuration asks for may be in plugins that are installed, or not here at all.
    for attempt in ("alone", "with plugins", "without options"):
        if attempt == "with plugins":
            os.environ.pop("PYTEST_DISABLE_PLUGIN_AUTOLOAD", None)
        extra = ["-o", "addopts="] if attempt == "without options" else []
        code = int(pytest.main(options + extra + files, plugins=[observer]))
        if code != 4 or observer.was_collected:
            break
    if code in (3, 4):
        records.say("broken", "pytest ended with the exit code {}".format(code))
