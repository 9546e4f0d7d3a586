//! The docker backend and the suite that every backend passes, against Podman's service with runc.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod conformance;
mod engine;

use engine::{IMAGE, TestEngine};
use session::{
    Image,
    docker::{DockerBackend, DockerConfig},
    lease::{Leases, TIME_TO_LIVE},
};

#[tokio::test]
async fn containers_do_what_every_backend_does() {
    let Some(engine) = TestEngine::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    conformance::checkout(folder.path());
    let leases = Leases::open(engine.folder().join("leases"), TIME_TO_LIVE).unwrap();
    let backend = DockerBackend::connect(DockerConfig::new(engine.address(), leases))
        .await
        .unwrap();
    let mut image = Image::container(IMAGE);
    image.checkout = Some(folder.path().to_owned());
    image.env.push(("GIVEN".to_owned(), "by image".to_owned()));
    conformance::all(&backend, &image).await;
}
