//! What is observed of one measure, and its estimate over documents.

use std::collections::BTreeMap;

use record::{Cluster, Estimate, bootstrap, proportion};

/// The items of a measure, by document.
pub(super) struct Sample {
    kind: Kind,
    documents: BTreeMap<String, Cluster>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Items are hits or not.
    Share,
    /// Items are between 0 and 1.
    Fraction,
    Amount,
}

impl Sample {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            documents: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, document: &str, value: f64) {
        self.add_all(document, value, 1.0);
    }

    pub(super) fn add_all(&mut self, document: &str, hits: f64, total: f64) {
        let cluster = match self.documents.get_mut(document) {
            Some(cluster) => cluster,
            None => self.documents.entry(document.to_owned()).or_default(),
        };
        cluster.hits += hits;
        cluster.total += total;
    }

    pub(super) fn mean(&self) -> Option<f64> {
        mean(self.documents.values())
    }

    pub(super) fn estimate(&self) -> Option<Estimate> {
        let clusters: Vec<Cluster> = self.documents.values().copied().collect();
        if self.kind == Kind::Share {
            return proportion(clusters.into_iter());
        }
        let found = bootstrap(clusters.len(), |sample| {
            mean(sample.map(|index| &clusters[index]))
        })?;
        // One document, or several that are alike, say nothing of the spread between documents. What lies
        // between 0 and 1 can then be told from nothing else as little as a share.
        if self.kind == Kind::Fraction && !found.has_interval() {
            return proportion(clusters.into_iter());
        }
        Some(found)
    }

    /// What `after` is above this, over the documents of both.
    pub(super) fn paired_gain(&self, after: &Self) -> Option<Estimate> {
        let of_both = |(document, before): (&String, &Cluster)| {
            Some((*before, *after.documents.get(document)?))
        };
        let pairs: Vec<(Cluster, Cluster)> = self.documents.iter().filter_map(of_both).collect();
        let found = bootstrap(pairs.len(), |sample| {
            let drawn: Vec<&(Cluster, Cluster)> = sample.map(|index| &pairs[index]).collect();
            let before = mean(drawn.iter().map(|(before, _)| before))?;
            Some(mean(drawn.iter().map(|(_, after)| after))? - before)
        });
        found.filter(Estimate::has_interval)
    }
}

fn mean<'a>(clusters: impl Iterator<Item = &'a Cluster>) -> Option<f64> {
    let (hits, total) = clusters.fold((0.0, 0.0), |(hits, total), cluster| {
        (hits + cluster.hits, total + cluster.total)
    });
    (total > 0.0).then(|| hits / total)
}
