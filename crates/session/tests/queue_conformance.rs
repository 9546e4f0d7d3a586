//! Sessions through a file queue do what every backend must do, whatever the runners host: jails of
//! their machine, or apptainer, here a stand-in that checks its arguments and runs commands for real.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "helpers of tests"
)]

mod conformance;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use session::{
    Apptainer, ApptainerOptions, Backend, Image,
    lease::{Leases, TIME_TO_LIVE},
    local::{LocalBackend, LocalConfig},
    queue::{Queue, QueueOptions, RunnerOptions, instance_name, serve},
};
use tokio::sync::oneshot;

/// The suite has two sessions at a time, and a runner has one.
const RUNNERS: u32 = 2;

/// Runs the suite over runners of `place/queue`, each of which hosts what `host` makes.
async fn hold_to_the_suite(
    place: &Path,
    image: &Image,
    host: impl AsyncFn(u32) -> Box<dyn Backend>,
) {
    let queue = place.join("queue");
    fs::create_dir(&queue).unwrap();
    let mut runners = Vec::new();
    for id in 0..RUNNERS {
        let options = RunnerOptions {
            queue: queue.clone(),
            id,
            idle_timeout: Duration::from_secs(1800),
            orphan_ttl: Duration::from_secs(1800),
            once: false,
            clock: || 1e9,
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let backend = host(id).await;
        let task = tokio::spawn(serve(options, backend, async {
            let _ = stopped.await;
        }));
        let ready = queue.join(format!("runner-{id}/ready.json"));
        while !ready.exists() && !task.is_finished() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        runners.push((stop, task));
    }
    conformance::all(&Queue::new(QueueOptions::new(&queue)), image).await;
    for (stop, task) in runners {
        let _ = stop.send(());
        task.await.unwrap().unwrap();
    }
}

fn image(place: &Path) -> Image {
    let checkout = place.join("checkout");
    conformance::checkout(&checkout);
    let mut image = Image::checkout(checkout);
    image.env.push(("GIVEN".to_owned(), "by image".to_owned()));
    image
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_of_jails_does_what_every_backend_does() {
    let place = tempfile::tempdir().unwrap();
    let image = image(place.path());
    let at = |name: String| -> PathBuf { place.path().join(name) };
    hold_to_the_suite(place.path(), &image, async |id| {
        let leases = Leases::open(at(format!("leases-{id}")), TIME_TO_LIVE).unwrap();
        let config = LocalConfig::new(leases, at(format!("work-{id}")));
        Box::new(LocalBackend::open(config).await.unwrap()) as Box<dyn Backend>
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_of_instances_does_what_every_backend_does() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    for name in ["state", "sif", "share", "roots"] {
        fs::create_dir(at(name)).unwrap();
    }
    // The stand-in shows the work tree at its place by a root over the host's.
    let overlay = format!(
        "mount -t tmpfs none {0} && mkdir {0}/over {0}/work {0}/root && mount -t overlay none \
         -o lowerdir=/,upperdir={0}/over,workdir={0}/work {0}/root",
        at("roots").display()
    );
    let probe = std::process::Command::new("unshare")
        .args(["--mount", "sh", "-c", &overlay])
        .status();
    if !probe.is_ok_and(|status| status.success()) {
        eprintln!("skipped: the stand-in for apptainer needs mounts and overlays here");
        return;
    }
    fs::write(at("sif/image.sif"), "").unwrap();
    let mut image = image(place.path());
    image.name = Some("image".to_owned());
    let text = |name: &str| at(name).display().to_string();
    hold_to_the_suite(place.path(), &image, async |id| {
        let backend = Apptainer::new(ApptainerOptions {
            program: Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/remote/apptainer.sh"),
            env: vec![
                (
                    "PATH".to_owned(),
                    "/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
                ),
                ("STATE".to_owned(), text("state")),
                ("ROOTS".to_owned(), text("roots")),
            ],
            sif_dir: at("sif"),
            share: Some(at("share")),
            work: at("share"),
            instance: instance_name(id),
            record: at(&format!("runner-{id}.instance.json")),
        });
        backend.reap().await.unwrap();
        Box::new(backend) as Box<dyn Backend>
    })
    .await;
    let complaints = fs::read_to_string(at("state/complaints")).unwrap_or_default();
    assert_eq!(complaints, "");
    assert_eq!(fs::read_dir(at("state")).unwrap().count(), 0);
    let left = fs::read_dir(at("share/gp_work")).unwrap().count();
    assert_eq!(left, 0, "work trees are left");
}
