

def pytest_plugins_installed():
    """Whether there are plugins that pytest loads unasked."""
    try:
        from importlib import metadata

        found = metadata.distributions()
        return any(entry.group == "pytest11" for one in found for entry in one.entry_points)
    except Exception:
        return True


def pytest_lacks(config, items):
    """Whether tests use what neither pytest nor the work tree defines: marks, fixtures, or somebody to await them."""
    import inspect
    import unittest

    known = {re.split(r"[:(]", line)[0].strip() for line in config.getini("markers")}
    for item in items:
        if any(mark.name not in known for mark in item.iter_markers()):
            return True
        of_class = getattr(item, "cls", None)
        if of_class is None or not issubclass(of_class, unittest.TestCase):
            test = getattr(item, "obj", None)
            if inspect.iscoroutinefunction(test) or inspect.isasyncgenfunction(test):
                return True
        fixtures = getattr(item, "_fixtureinfo", None)
        if fixtures is None:
            continue
        given = {"request"} | set(fixtures.name2fixturedefs)
        values = getattr(item, "callspec", None)
        if values is not None:
            given |= set(values.params) | set(getattr(values, "funcargs", ()))
        if not given.issuperset(fixtures.names_closure):
            return True
    return False


def of_example(error):
    """What a failed example of a documentation says, in the words of an assertion, or what it raised; None of other
    errors."""
    for failure in list(getattr(error, "failures", None) or [])[:1]:
        if type(error).__name__ == "MultipleDoctestFailures":
            error = failure
    kind, example, test = type(error).__name__, getattr(error, "example", None), getattr(error, "test", None)
    if example is None or test is None:
        return None
    frames = []
    path = relative(str(test.filename))
    if path is not None:
        frames = [[path, (test.lineno or 0) + example.lineno + 1, readable(test.name)]]
    if kind == "UnexpectedException":
        kind, message, inner = described(error.exc_info[1], error.exc_info[2])
        return [kind, message, frames + inner]
    if kind != "DocTestFailure":
        return None
    got, want = error.got.strip().split("\n"), example.want.strip().split("\n")
    # Of exceptions the last line tells; else the first that is another.
    if got[0].startswith("Traceback") or want[0].startswith("Traceback"):
        got, want = got[-1:], want[-1:]
    longest = max(len(got), len(want))
    pairs = zip(got + [""] * (longest - len(got)), want + [""] * (longest - len(want)))
    got, want = next((pair for pair in pairs if pair[0] != pair[1]), (got[0], want[0]))
    message = "assert {} == {}".format(got.strip() or "nothing", want.strip() or "nothing")
    return ["AssertionError", readable(message), frames]


def pytest_observer(records, lines, ids, limit):
    import pytest

    class Observer:
        """A plugin that says what happens, and has the tests that were asked for run in the order in which they
        run among all others: many a test goes by what those before it have left."""

        def __init__(self, may_want_plugins):
            # Whether plugins are installed and not loaded, and whether they may have to be.
            self.may_want_plugins, self.wants_plugins = may_want_plugins, False
            self.was_collected = self.is_broken = False
            # Modules of plugins that were installed.
            self.plugins = []
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

        @pytest.hookimpl(hookwrapper=True)
        def pytest_load_initial_conftests(self, early_config):
            # Coverage is measured by what lines are noted with.
            if getattr(early_config.known_args_namespace, "cov_source", None):
                early_config.known_args_namespace.cov_source = []
            yield

        @pytest.hookimpl(tryfirst=True)
        def pytest_cmdline_main(self, config):
            if self.may_want_plugins and getattr(config, "_get_unknown_ini_keys", list)():
                self.wants_plugins = True
                return 0  # Nothing more has to be seen.

        @pytest.hookimpl(tryfirst=True)
        def pytest_configure(self, config):
            option = config.option
            if hasattr(option, "numprocesses"):
                # Who runs in other processes cannot be watched.
                option.numprocesses, option.dist, option.tx = None, "no", []
            if hasattr(option, "benchmark_disable"):
                option.benchmark_disable = True
            plugins = [plugin for plugin, _ in config.pluginmanager.list_plugin_distinfo()]
            self.plugins = [plugin.__name__ for plugin in plugins if isinstance(plugin, type(sys))]

        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, session, config, items):
            self.was_collected = True
            if ids:
                self.select(config, items)
            if self.may_want_plugins and not (ids and self.unseen()):
                self.wants_plugins = self.is_broken or pytest_lacks(config, items)
                if self.wants_plugins:
                    items[:] = []

        def select(self, config, items):
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
            self.is_broken |= report.failed
            if report.failed or (report.skipped and report.nodeid):
                for name in self.concerned(report.nodeid):
                    records.say("status", readable(name), "error" if report.failed else "skipped")

        def pytest_exception_interact(self, node, call, report):
            error, traceback = call.excinfo.value, call.excinfo.tb
            if type(error).__name__ == "CollectError" and error.__cause__ is not None:
                error = error.__cause__
                traceback = error.__traceback__
            told = of_example(error) or described(error, traceback)
            is_test = hasattr(report, "when")
            for name in [report.nodeid] if is_test else self.concerned(report.nodeid):
                records.say("failure", readable(name), *told)

        @pytest.hookimpl(hookwrapper=True)
        def pytest_runtest_protocol(self, item):
            limit.begin()
            yield
            limit.end()

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

    return Observer


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
    # Plugins may have been imported beforehand, which is nothing to be warned of.
    rewrite.AssertionRewritingHook._warn_already_imported = lambda *_: None


def pytest_run(request, records, lines, compiled, folder, limit):
    """Plugins cost time and change what tests do, so they are loaded where something asks for them: then this run
    says so, and is made anew with `plugins` in its request."""
    import pytest

    pytest_reads(compiled)
    may_want_plugins = not request["plugins"] and pytest_plugins_installed()
    observer = pytest_observer(records, lines, request["ids"], limit)(may_want_plugins)
    options = ["-q", "--tb=no", "--color=no", "-p", "no:cacheprovider", "--rootdir=" + ROOT]
    options += ["--basetemp=" + os.path.join(folder, "pytest"), "--continue-on-collection-errors"]
    # Tests run in their order.
    options += ["-p", "no:randomly", "-p", "no:random_order"]
    if request["plugins"]:
        os.environ.pop("PYTEST_DISABLE_PLUGIN_AUTOLOAD", None)
    if request["stop"]:
        options.append("--maxfail=1")
    if request["ids"] and not observer.files:
        return

    def run(targets):
        code = int(pytest.main(options + targets, plugins=[observer]))
        if observer.was_collected or code not in (3, 4):
            return code
        if may_want_plugins:
            observer.wants_plugins = True
            return code
        # What a repository's configuration asks for may not be here at all.
        return int(pytest.main(options + ["-o", "addopts="] + targets, plugins=[observer]))

    code = run([])
    if observer.was_collected and not observer.wants_plugins and observer.unseen():
        # They lie outside of what is looked through for tests, or are not called as tests are.
        code = run(observer.named())
    # Where the first failure ends a run, one at the collection ends it before anything was looked at.
    observer.wants_plugins |= may_want_plugins and observer.is_broken
    records.say("used", *observer.plugins)
    if observer.wants_plugins:
        records.say("again")
    elif code in (3, 4):
        records.say("broken", "pytest ended with the exit code {}".format(code))
