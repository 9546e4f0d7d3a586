//! What one program leaves for the next one.

use std::sync::Arc;

use sandbox::{Job, Status};

use crate::common::{ALL, TIGHT, Tier, at, ends_as, is_counted, run};

#[tokio::test]
async fn row_29_shared_memory_and_sockets_do_not_pass_from_run_to_run() {
    // A key of this process's own: what others left on this machine is no run's doing.
    let key = (1 << 20 | std::process::id()).to_string();
    for sandbox in at(ALL) {
        let leave = "
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
made = [libc.shmget(4711, 4096, 0o1666), libc.msgget(4711, 0o1666), libc.semget(4711, 1, 0o1666)]
print(sum(id >= 0 for id in made))
try:
    s = socket.socket(socket.AF_UNIX); s.bind('\\0left-behind'); s.listen()
    if os.fork() == 0:
        os.setsid(); s.accept()
    print('bound')
except OSError: print('no socket')
try: open('/dev/shm/left-behind', 'w').write('x')
except OSError: pass
";
        let leave = leave.replace("4711", &key);
        let outcome = ends_as(&sandbox, &leave, &[Status::Ok]).await;
        // Either they are the run's own, or there are none.
        let expected = match (sandbox.tier(), is_counted(&sandbox, "memory")) {
            (Tier::Namespaces, true) => "3\nbound\n",
            (Tier::Namespaces, false) => "0\nbound\n",
            _ => "0\nno socket\n",
        };
        assert_eq!(outcome.stdout.text(), expected, "{}", outcome.stderr.text());
        let look = "
import ctypes, os, socket
libc = ctypes.CDLL(None)
print(max(libc.shmget(4711, 0, 0), libc.msgget(4711, 0), libc.semget(4711, 0, 0)))
try: s = socket.socket(socket.AF_UNIX); s.connect('\\0left-behind'); print('reached')
except OSError: print('no')
for table in ('shm', 'msg', 'sem'):
    with open('/proc/sysvipc/' + table) as f: print(' 4711 ' in f.read())
";
        let look = look.replace("4711", &key);
        let outcome = ends_as(&sandbox, &look, &[Status::Ok, Status::NonZero(1)]).await;
        let text = outcome.stdout.text();
        assert!(
            text.starts_with("-1\nno\n") && !text.contains("True"),
            "{text}"
        );
        if sandbox.tier() != Tier::Limits {
            let left = run(
                &sandbox,
                "import os; print(os.path.exists('/dev/shm/left-behind'))",
            )
            .await;
            assert_eq!(left.stdout.text(), "False\n", "{}", sandbox.tier());
        }
        // Not on the host either.
        for table in ["shm", "msg", "sem"] {
            let text =
                std::fs::read_to_string(format!("/proc/sysvipc/{table}")).unwrap_or_default();
            assert!(!text.contains(&format!(" {key} ")), "{table}: {text}");
        }
    }
    let _ = std::fs::remove_file("/dev/shm/left-behind");
}

#[tokio::test]
async fn row_37_no_cache_of_one_run_is_found_by_the_next() {
    let harness: Arc<str> = "
import json
def main(payload, emit):
    space = {}
    exec(payload, space)
    emit(json.dumps(space.get('answer')).encode())
"
    .into();
    for sandbox in at(ALL) {
        let poison = "
import builtins, importlib.util, json, marshal, os, sys, time
home = os.path.expanduser('~')
evil = compile('raise SystemExit(99)', 'x', 'exec')
def pyc(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, 'wb').write(importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(evil))
site = 'lib/python%d.%d' % sys.version_info[:2]
failed = 0
places = [home + '/json.py', home + '/__pycache__/json.cpython-%d%d.pyc' % sys.version_info[:2], home + '/sitecustomize.py',
          home + '/usercustomize.py', home + '/.local/' + site + '/site-packages/evil.pth', home + '/.bashrc', home + '/.cache/pip/x',
          home + '/pytest.ini', home + '/conftest.py']
for place in places:
    os.makedirs(os.path.dirname(place), exist_ok=True)
    open(place, 'w').write('import os; os._exit(99)')
pyc(home + '/__pycache__/json.cpython-%d%d.pyc' % sys.version_info[:2])
for place in (importlib.util.cache_from_source(json.__file__), json.__file__, '/usr/' + site + '/evil.py', '/usr/local/' + site + '/dist-packages/evil.pth'):
    try: open(place, 'ab').write(b'x')
    except OSError: failed += 1
print(failed)
builtins.print = builtins.len = None
json.dumps = json.loads = lambda *a, **k: '1'
sys.modules['math'] = sys.modules['re'] = None
sys.path.insert(0, '/evil'); os.environ['PATH'] = '/evil'; os.environ['PYTHONPATH'] = '/evil'
import random; random.seed(5)
os.umask(0o777)
answer = 1
";
        let outcome = ends_as(&sandbox, poison, &[Status::Ok]).await;
        assert_eq!(outcome.stdout.text(), "4\n", "{}", outcome.stderr.text());
        // Into the interpreter that runs harnesses, too.
        let job = Job::harness(harness.clone(), poison.as_bytes().to_vec(), TIGHT);
        sandbox.run(job).await.unwrap();
        let look = "
import json, math, os, re, sys
print(os.listdir(os.path.expanduser('~')), os.environ['PATH'], '/evil' in sys.path, json.dumps([1]), os.umask(0))";
        let expected = "['main.py'] /usr/local/bin:/usr/bin:/bin False [1] 18\n";
        let warm = run(&sandbox, look).await;
        assert_eq!(warm.stdout.text(), expected, "{}", warm.stderr.text());
        let cold = Job::exec(["/usr/bin/env", "python3", "-c", look], TIGHT);
        let cold = sandbox.run(cold).await.unwrap();
        let expected = expected.replace("['main.py']", "[]");
        assert_eq!(cold.stdout.text(), expected, "{}", cold.stderr.text());
        let honest = b"answer = [1, 'x']".to_vec();
        let honest = sandbox
            .run(Job::harness(harness.clone(), honest, TIGHT))
            .await
            .unwrap();
        assert_eq!(honest.result, br#"[1, "x"]"#, "{}", honest.stderr.text());
    }
}
