

def unittest_observer(records, lines, limit):
    import unittest

    class Observer(unittest.TestResult):
        """Says what happens. `holders` are the classes and modules that could not be set up."""

        def __init__(self):
            unittest.TestResult.__init__(self)
            self.holders = {}
            self.told = set()

        def say(self, test, status, error=None):
            name = readable(test.id())
            if not isinstance(test, unittest.TestCase) and name.endswith(")") and "(" in name:
                # `setUpClass (package.module.Class)`: stands for all tests below.
                self.holders[name[name.index("(") + 1 : -1]] = (status, error)
            self.told.add(name)
            records.say("status", name, status)
            if error is not None:
                records.say("failure", name, *described(error[1], error[2]))

        def startTest(self, test):
            unittest.TestResult.startTest(self, test)
            if lines is not None:
                records.say("lines", "", lines.take())
            records.say("start", readable(test.id()))
            limit.begin()

        def stopTest(self, test):
            limit.end()
            unittest.TestResult.stopTest(self, test)
            if lines is not None:
                records.say("lines", readable(test.id()), lines.take())
            records.say("stop", readable(test.id()))

        def addSuccess(self, test):
            self.say(test, "passed")

        def addFailure(self, test, error):
            unittest.TestResult.addFailure(self, test, error)
            self.say(test, "failed", error)

        def addError(self, test, error):
            unittest.TestResult.addError(self, test, error)
            self.say(test, "failed" if isinstance(test, unittest.TestCase) else "error", error)

        def addSkip(self, test, reason):
            self.say(test, "skipped")

        def addExpectedFailure(self, test, error):
            self.say(test, "expected_failure")

        def addUnexpectedSuccess(self, test):
            unittest.TestResult.addUnexpectedSuccess(self, test)
            self.say(test, "failed")
            records.say("failure", readable(test.id()), "UnexpectedSuccess", "was expected to fail and passed", [])

        def addSubTest(self, test, part, error):
            unittest.TestResult.addSubTest(self, test, part, error)
            if error is not None:
                self.say(test, "failed", error)

    return Observer()


def unittest_files():
    """The modules of all test files, by the names that the work tree's top gives them."""
    found = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(
            name
            for name in folders
            if name.isidentifier()
            and name not in INSTALLED | {"build", "dist"}
            and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
        )
        place = os.path.relpath(folder, ROOT)
        parts = [] if place == "." else place.split(os.sep)
        for name in sorted(files):
            stem, extension = os.path.splitext(name)
            if extension == ".py" and stem.isidentifier() and (stem.startswith("test") or stem.endswith("_test")):
                found.append(".".join(parts + [stem]))
    return found


def unittest_module(name):
    """Imports a module of tests, also from folders that are no packages."""
    parts = name.split(".")
    folder = ROOT
    for number, part in enumerate(parts[:-1]):
        folder = os.path.join(folder, part)
        package = ".".join(parts[: number + 1])
        if not os.path.isdir(folder) or os.path.isfile(os.path.join(folder, "__init__.py")):
            continue
        loaded = sys.modules.get(package)
        if loaded is None or folder not in list(getattr(loaded, "__path__", [])):
            # An installed package of the same name would be found before a folder without `__init__.py`.
            loaded = type(sys)(package)
            loaded.__path__ = [folder]
            sys.modules[package] = loaded
        if folder not in sys.path:
            sys.path.append(folder)
    return importlib.import_module(name)


def unittest_has(name):
    path = os.path.join(ROOT, *name.split("."))
    return os.path.isfile(path + ".py") or os.path.isfile(os.path.join(path, "__init__.py"))


def unittest_modules(ids):
    """The modules that some ids lie in, in the order in which all modules run; last those that are not among these."""
    files = unittest_files()
    if not ids:
        return files
    modules = []
    for wanted in ids:
        parts = wanted.split(".")
        lengths = [n for n in range(len(parts), 0, -1) if unittest_has(".".join(parts[:n]))]
        if lengths and ".".join(parts[: lengths[0]]) not in modules:
            modules.append(".".join(parts[: lengths[0]]))
    place = {name: number for number, name in enumerate(files)}
    return sorted(modules, key=lambda name: place.get(name, len(files)))


def unittest_above(name):
    """A test, its class, its module and the packages above."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]


def unittest_run(request, records, lines, compiled, scratch, limit):
    import unittest

    def flat(suite):
        for part in suite:
            if isinstance(part, unittest.BaseTestSuite):
                for test in flat(part):
                    yield test
            else:
                yield part

    ids = request["ids"]
    loader = unittest.TestLoader()
    tests, broken = {}, {}
    for name in unittest_modules(ids):
        try:
            found = list(flat(loader.loadTestsFromModule(unittest_module(name))))
        except unittest.SkipTest:
            found = []
            records.say("status", name, "skipped")
            broken[name] = ("skipped", None)
        except (Exception, SystemExit) as error:
            found = []
            broken[name] = ("error", described(error, error.__traceback__))
            records.say("status", name, "error")
            records.say("failure", name, *broken[name][1])
            if request["stop"]:
                break
        for test in found:
            tests.setdefault(test.id(), []).append(test)
    # Many a test goes by what those before it have left, so the order is that of all.
    wanted = set(ids)
    names = [name for name in tests if not ids or not wanted.isdisjoint(unittest_above(name))]
    found = {above for name in names for above in unittest_above(name)}
    for name in ids:
        above = [module for module in broken if name.startswith(module + ".")]
        if above and name not in found:
            status, failure = broken[above[0]]
            records.say("status", name, status)
            if failure is not None:
                records.say("failure", name, *failure)
    chosen = [test for name in names for test in tests[name]]
    if request["stop"] and any(status == "error" for status, _ in broken.values()):
        return
    observer = unittest_observer(records, lines, limit)
    observer.failfast = request["stop"]
    names = [test.id() for test in chosen]
    unittest.TestSuite(chosen).run(observer)
    for name in names:
        above = [holder for holder in observer.holders if name.startswith(holder + ".")]
        if readable(name) not in observer.told and above:
            status, error = observer.holders[above[0]]
            records.say("status", readable(name), status)
            if error is not None:
                records.say("failure", readable(name), *described(error[1], error[2]))
