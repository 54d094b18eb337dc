//! Relative links of all pages lead to files and anchors, and the book lists all its pages.

use std::path::{Component, Path, PathBuf};

use super::finding::Finding;
use super::pages::Pages;
use super::repository::Repository;

const BOOK: &str = "docs";
const SUMMARY: &str = "docs/SUMMARY.md";
/// Written by `smolfed sweep`, and linked from the page about reproduction.
const TABLE: &str = "table.md";

/// Finds dead links in all pages, and pages missing from the summary.
pub fn check(repository: &Repository, pages: &Pages) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, page) in pages {
        for (link, line) in &page.links {
            if let Some(message) = dead(repository, pages, file, link) {
                findings.push(Finding {
                    file: file.clone(),
                    line: *line,
                    message,
                });
            }
        }
    }
    findings.extend(unlisted(pages));
    findings
}

/// Returns the error of a link of `file`. Does not follow external addresses.
fn dead(repository: &Repository, pages: &Pages, file: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() {
        Some(file.to_path_buf())
    } else {
        relative(file, path)
    };
    let exists = |target: &PathBuf| {
        repository.files.iter().any(|file| file.starts_with(target))
            || target.as_os_str().is_empty()
    };
    let Some(target) = target.filter(exists) else {
        return Some(format!("`{link}`: there is no such file"));
    };
    let known = |page: &super::pages::Page| page.anchors.contains(anchor);
    let missing = !anchor.is_empty() && !pages.get(&target).is_none_or(known);
    missing.then(|| format!("`{link}`: {} has no such anchor", target.display()))
}

/// Returns `link` of `file` as a path from the root, or `None` if it leaves the repository.
fn relative(file: &Path, link: &str) -> Option<PathBuf> {
    let mut path = file.parent()?.to_path_buf();
    for component in Path::new(link).components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir => path.pop().then_some(())?,
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

fn unlisted(pages: &Pages) -> impl Iterator<Item = Finding> {
    let summary = Path::new(SUMMARY);
    let links = pages
        .get(summary)
        .map(|page| page.links.as_slice())
        .unwrap_or_default();
    let listed: Vec<PathBuf> = links
        .iter()
        .filter_map(|(link, _)| relative(summary, link))
        .collect();
    let missing = pages.keys().filter(move |page| {
        page.starts_with(BOOK)
            && !page.ends_with(TABLE)
            && page.as_path() != summary
            && !listed.contains(page)
    });
    missing.map(|page| Finding {
        file: page.clone(),
        line: 1,
        message: format!("{SUMMARY} does not list this page"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::pages::Page;
    use super::*;

    fn messages(pages: &[(&str, &str)]) -> Vec<String> {
        let parsed = pages
            .iter()
            .map(|(file, text)| (PathBuf::from(file), Page::parse(text)));
        let pages: Pages = parsed.collect();
        let files = pages
            .keys()
            .cloned()
            .chain([PathBuf::from("core/src/lib.rs")])
            .collect();
        let repository = Repository {
            root: PathBuf::new(),
            files,
        };
        check(&repository, &pages)
            .iter()
            .map(Finding::to_string)
            .collect()
    }

    #[test]
    fn links_to_files_folders_and_anchors_are_followed() {
        let readme =
            "[a](docs/a.md#one) [core](core/) [lib](core/src/lib.rs#L3) [x](https://x.y/z)";
        let pages = [
            ("README.md", readme),
            ("docs/SUMMARY.md", "[a](a.md)"),
            ("docs/a.md", "# One\n[self](#one) [up](../README.md)"),
            ("docs/sweep/table.md", ""),
        ];
        assert_eq!(messages(&pages), [""; 0]);
    }

    #[test]
    fn dead_links_are_named_with_their_line() {
        let pages = [
            ("docs/SUMMARY.md", "[a](a.md)"),
            ("docs/a.md", "# One\n\n[b](b.md)\n[t](#two)"),
        ];
        let expected = [
            "docs/a.md:3: `b.md`: there is no such file",
            "docs/a.md:4: `#two`: docs/a.md has no such anchor",
        ];
        assert_eq!(messages(&pages), expected);
        let outside = [("README.md", "[out](../../secret.txt)")];
        assert_eq!(
            messages(&outside),
            ["README.md:1: `../../secret.txt`: there is no such file"]
        );
    }

    #[test]
    fn a_page_that_the_summary_leaves_out_is_named() {
        let pages = [("docs/SUMMARY.md", ""), ("docs/b.md", "")];
        assert_eq!(
            messages(&pages),
            ["docs/b.md:1: docs/SUMMARY.md does not list this page"]
        );
    }
}
