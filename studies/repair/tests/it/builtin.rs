//! The packages that come along pass their tests, and the tests say of every task what the task says.

use std::collections::BTreeMap;

use crate::place::{Place, all};
use judge::pytest::TestStatus::Passed;
use repair::{Checkout, PACKAGES, TestFramework::Unittest, workplace::TestRequest};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_fail_and_pass_as_they_say() {
    for package in PACKAGES {
        let Some(place) = Place::new(Unittest, package.files).await else {
            return;
        };
        let folder = place.testbed.image.checkout.clone().unwrap();
        let tasks = package.tasks(&folder).unwrap();
        let mut requests = vec![all()];
        for task in &tasks {
            let checkout = Checkout::of(&task.place).unwrap();
            let paths = checkout.patch().unwrap().paths().into_iter();
            let writes: BTreeMap<_, _> = paths
                .map(|path| (path.clone(), checkout.read(&path).unwrap()))
                .collect();
            let request = TestRequest { writes, ..all() };
            requests.push(request);
        }
        let mut workplace = place.open().await;
        let runs = workplace.run_tests(&requests).await.unwrap();
        workplace.close().await.unwrap();
        let passed = |at: usize, id: &String| runs[at].statuses.get(id) == Some(&Passed);
        assert!(
            runs[0].statuses.len() >= 18,
            "{}: {}",
            package.name,
            runs[0].output
        );
        for id in runs[0].statuses.keys() {
            assert!(
                passed(0, id),
                "{} {id}: {:?}",
                package.name,
                runs[0].failures.get(id)
            );
        }
        for (at, task) in (1..).zip(&tasks) {
            for id in &task.checks.fail_to_pass {
                assert!(passed(0, id) && !passed(at, id), "{} {id}", task.id.0);
            }
            for id in &task.checks.pass_to_pass {
                assert!(passed(0, id) && passed(at, id), "{} {id}", task.id.0);
            }
            let checked = task.checks.fail_to_pass.len() + task.checks.pass_to_pass.len();
            assert_eq!(checked, runs[0].statuses.len(), "{}", task.id.0);
        }
    }
}
