//! What `etude repair` makes of a repository's tests before, while and after it looks for a patch: their order, their
//! imports, their interpreter and their numbers.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    etude::{assert_says, assert_success, etude, stderr, wait_while_running},
    processes::signal,
    repair::broken,
};

fn shop(scratch: &Path) -> PathBuf {
    let folder = scratch.join("shop");
    broken(&folder);
    folder
}

fn repair(scratch: &Path, repository: &Path, more: &[&str]) -> Command {
    let arguments = ["repair", "--issue", "the total is off", "--repo"];
    let mut command = etude(scratch, arguments);
    command.arg(repository).args(more);
    command
}

/// A virtual environment without pytest.
fn environment(scratch: &Path) -> PathBuf {
    let made = Command::new("python3")
        .args(["-m", "venv", "--without-pip", "venv"])
        .current_dir(scratch)
        .output()
        .unwrap();
    assert_success(&made);
    scratch.join("venv/bin")
}

#[test]
fn tests_that_go_by_those_before_them_keep_no_patch_from_being_found() {
    let scratch = TempDir::new().unwrap();
    let shop = shop(scratch.path());
    // It runs last, and by names it would be the first.
    fs::create_dir(shop.join("tests/after")).unwrap();
    fs::write(shop.join("tests/after/__init__.py"), "").unwrap();
    fs::write(
        shop.join("tests/after/test_last.py"),
        "import unittest\n\nfrom shop import price\n\n\nclass TestLast(unittest.TestCase):\n    \
         def test_gone(self):\n        del price.cheapest\n        self.assertTrue(price.total)\n",
    )
    .unwrap();
    // It passes only after one that is skipped, and so not among those that are to go on passing.
    let tests = shop.join("tests/test_price.py");
    let text = fs::read_to_string(&tests).unwrap();
    let text = text.replace(
        "import cheapest, total",
        "import total\nfrom shop import price",
    );
    let text = text.replace("cheapest([", "price.cheapest([")
        + "\n    def test_y(self):\n        price.left = 1\n        self.skipTest('always')\n\n    \
           def test_z(self):\n        self.assertEqual(price.left, 1)\n";
    fs::write(&tests, text).unwrap();
    let output = repair(scratch.path(), &shop, &["--json"]).output().unwrap();
    assert_says(&output, 0, &["1 test now passes, 4 still do."]);
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        said["tests"]["pass_to_pass"],
        json!({"passed": 4, "total": 4})
    );
}

#[test]
fn an_end_without_a_patch_is_told_with_its_cause_and_its_numbers() {
    let scratch = TempDir::new().unwrap();
    let shop = shop(scratch.path());
    let tests = shop.join("tests/test_price.py");
    let text = fs::read_to_string(&tests).unwrap();
    fs::write(&tests, text.replace("[1, 2, 3]), 6", "[1, 2, 3]), 'six'")).unwrap();
    let output = repair(scratch.path(), &shop, &["--json", "--budget", "2000"])
        .output()
        .unwrap();
    assert_says(
        &output,
        1,
        &[
            "nothing is left to try",
            "of 2000 candidates (--budget) are left: the search knows no other edit",
        ],
    );
    assert!(!stderr(&output).contains("budget-spent"));
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        said["tests"],
        json!({
            "fail_to_pass": {"passed": 0, "total": 1},
            "pass_to_pass": {"passed": 2, "total": 2},
            "passed": false,
        })
    );
    assert!(said["candidates"].as_u64().unwrap() < 2000);
    assert_eq!(said["stop_reason"], "candidates_exhausted");
    let output = repair(scratch.path(), &shop, &["--json", "--budget", "2"])
        .output()
        .unwrap();
    assert_says(&output, 1, &["the budget of candidates is spent"]);
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["stop_reason"], "budget_spent");
}

#[test]
fn tests_that_cannot_be_imported_are_told_before_a_search() {
    let scratch = TempDir::new().unwrap();
    let shop = shop(scratch.path());
    for (import, error) in [
        (
            "from importlib.metadata import version\nversion('shop-that-nobody-has')\n",
            "PackageNotFoundError: ",
        ),
        (
            "from shop import _version\nimport shop.made_by_its_build\n",
            "can be imported (1 tried)",
        ),
        (
            "import zebra_crossing\n",
            "No module named 'zebra_crossing'",
        ),
    ] {
        fs::write(shop.join("shop/_version.py"), "").unwrap();
        fs::write(shop.join("shop/price.py"), import).unwrap();
        let output = repair(scratch.path(), &shop, &[]).output().unwrap();
        let parts = [
            "no module of tests of",
            "the first, tests.test_price, says",
            error,
            &format!("pip install pytest {}", shop.display()),
            "--python VENV/bin/python",
        ];
        assert_says(&output, 2, &parts);
        assert!(!stderr(&output).contains("candidate"), "{import}");
    }
    // What no installation mends is the search's.
    fs::write(shop.join("shop/price.py"), "total = cheapest = missing\n").unwrap();
    let output = repair(scratch.path(), &shop, &[]).output().unwrap();
    assert_says(&output, 1, &["note: no module of tests of", "NameError"]);
}

#[test]
fn the_first_python_of_the_path_runs_the_tests() {
    let scratch = TempDir::new().unwrap();
    let shop = shop(scratch.path());
    let bin = environment(scratch.path());
    let path = std::env::var_os("PATH").unwrap();
    let folders = [bin.clone()]
        .into_iter()
        .chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).unwrap();
    let output = repair(scratch.path(), &shop, &[])
        .env("PATH", &path)
        .output()
        .unwrap();
    assert_says(&output, 0, &[&format!("with {}/python", bin.display())]);
    // Whether another one has it or none: it is said that this one does not.
    let output = repair(scratch.path(), &shop, &["--framework", "pytest"])
        .env("PATH", &path)
        .output()
        .unwrap();
    let said = stderr(&output);
    let named = said.lines().find(|line| line.contains("has no pytest"));
    assert!(
        named.is_some_and(|line| line.contains(bin.to_str().unwrap())),
        "{said}"
    );
}

#[test]
fn a_missing_pytest_and_a_missing_file_of_tests_are_both_told_by_what_mends_them() {
    let scratch = TempDir::new().unwrap();
    let shop = shop(scratch.path());
    let python = environment(scratch.path()).join("python3");
    let python = python.to_str().unwrap();
    let with_pytest = ["--framework", "pytest", "--python", python];
    let output = repair(scratch.path(), &shop, &with_pytest)
        .output()
        .unwrap();
    let install = "-m pip install pytest), or name another Python with --python";
    assert_says(&output, 2, &["has no pytest", install]);
    assert!(!stderr(&output).contains("sandbox.python"));
    let nope = [&with_pytest[..], &["--test", "nope::x"]].concat();
    let output = repair(scratch.path(), &shop, &nope).output().unwrap();
    assert_says(&output, 2, &["--test nope::x: there is no file nope in "]);
}

/// Of a module that only some functions import.
#[test]
fn tests_that_lack_a_module_are_left_out_and_named() {
    let scratch = TempDir::new().unwrap();
    let shop = shop(scratch.path());
    let source = shop.join("shop/price.py");
    let text = fs::read_to_string(&source).unwrap()
        + "\n\ndef printed(prices):\n    import no_such_printer\n\n    return no_such_printer.table(prices)\n";
    fs::write(&source, text).unwrap();
    let lacking = (1..4).map(|number| {
        format!(
            "    def test_printed_{number}(self):\n        self.assertTrue(printed([{number}]))\n\n"
        )
    });
    let tests = format!(
        "import unittest\n\nfrom shop.price import printed\n\n\nclass TestPrinted(unittest.TestCase):\n{}",
        lacking.collect::<String>()
    );
    fs::write(shop.join("tests/test_printed.py"), tests).unwrap();
    let output = repair(scratch.path(), &shop, &["--json"]).output().unwrap();
    let note = "note: 3 more cannot import no_such_printer, which neither ";
    assert_says(
        &output,
        0,
        &["2 tests pass and 1 fail", note, "are left out"],
    );
    // Where the issue is about it, it counts.
    let arguments = [
        "repair",
        "--issue",
        "no_such_printer is not there",
        "--budget",
        "1",
        "--repo",
    ];
    let mut command = etude(scratch.path(), arguments);
    let output = command.arg(&shop).output().unwrap();
    assert_says(&output, 1, &["2 tests pass and 4 fail"]);
    assert!(!stderr(&output).contains(note));
}

#[test]
fn a_repair_that_is_told_to_end_leaves_nothing() {
    let scratch = TempDir::new().unwrap();
    let shop = shop(scratch.path());
    let tests = "import time\nimport unittest\n\n\nclass TestSlow(unittest.TestCase):\n    def test_slow(self):\n        \
                 time.sleep(600)\n";
    fs::write(shop.join("tests/test_slow.py"), tests).unwrap();
    let sessions = || -> Vec<PathBuf> {
        let folders = fs::read_dir(scratch.path()).unwrap();
        let folders = folders.map(|entry| entry.unwrap().path());
        let folders = folders.filter(|path| path.to_string_lossy().contains("etude-sessions-"));
        let inside = folders.flat_map(|folder| fs::read_dir(folder).unwrap());
        inside.map(|entry| entry.unwrap().path()).collect()
    };
    let mut child = repair(scratch.path(), &shop, &[])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    if !wait_while_running(&mut child, || !sessions().is_empty()) {
        let output = child.wait_with_output().unwrap();
        println!("skipped: {}", stderr(&output));
        return;
    }
    signal("TERM", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert_eq!(sessions(), Vec::<PathBuf>::new());
}
