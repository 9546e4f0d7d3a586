//! Sources that no patch can change: what is no UTF-8 text, what lies behind a symbolic link, what Python cannot read.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use code::{RelativePath, syntax_fault};
use repair::Checkout;

/// Those of `paths`, each with the reason.
pub(super) fn uneditable<'a>(
    checkout: &Checkout,
    paths: impl IntoIterator<Item = &'a str>,
) -> Vec<String> {
    let paths = paths.into_iter();
    let named = paths.filter_map(|path| {
        let why = why(checkout, &RelativePath::new(path).ok()?)?;
        Some(format!("{path} ({why})"))
    });
    named.collect()
}

fn why(checkout: &Checkout, path: &RelativePath) -> Option<String> {
    if let Some(link) = Link::on(checkout.folder(), path.as_str()) {
        return Some(link.in_words());
    }
    let content = match checkout.read(path) {
        Ok(content) => content?,
        Err(error) => return Some(error.to_string()),
    };
    match String::from_utf8(content) {
        Err(_) => Some("it is no UTF-8 text".to_owned()),
        Ok(text) if path.as_str().ends_with(".py") => syntax_fault(&text).map(|it| it.to_string()),
        Ok(_) => None,
    }
}

/// A symbolic link on the way to a file of a repository.
pub(super) struct Link {
    /// Below the repository.
    pub(super) path: PathBuf,
    pub(super) target: PathBuf,
    /// What it points to is no part of the repository, and sandboxes do not see it.
    pub(super) leads_out: bool,
}

impl Link {
    /// The first one on the way to `path` in `folder`.
    pub(super) fn on(folder: &Path, path: &str) -> Option<Self> {
        let mut so_far = PathBuf::new();
        for part in Path::new(path).components() {
            let Component::Normal(part) = part else {
                return None;
            };
            so_far.push(part);
            let place = folder.join(&so_far);
            if !fs::symlink_metadata(&place).ok()?.is_symlink() {
                continue;
            }
            let target = fs::read_link(&place).ok()?;
            let inside = folder.canonicalize().ok().zip(place.canonicalize().ok());
            return Some(Self {
                leads_out: !inside.is_some_and(|(folder, place)| place.starts_with(folder)),
                path: so_far,
                target,
            });
        }
        None
    }

    pub(super) fn in_words(&self) -> String {
        let (path, target) = (self.path.display(), self.target.display());
        match self.leads_out {
            true => {
                format!("{path} is a symbolic link to {target}, which is not in the repository")
            }
            false => format!("{path} is a symbolic link to {target}, and links are not edited"),
        }
    }
}

/// The link out of the repository behind which a module lies that cannot be imported.
pub(super) fn link_to_module(folder: &Path, module: &str) -> Option<Link> {
    let path = module.replace('.', "/");
    ["", "src/", "tests/"].iter().find_map(|above| {
        let found = [format!("{above}{path}.py"), format!("{above}{path}")];
        let mut links = found.iter().filter_map(|path| Link::on(folder, path));
        links.find(|link| link.leads_out)
    })
}
