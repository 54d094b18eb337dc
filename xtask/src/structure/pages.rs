//! Markdown pages with their links and anchors.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::PathBuf;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::repository::Repository;

/// All pages of the repository.
pub type Pages = BTreeMap<PathBuf, Page>;

/// Links and anchors of one page.
#[derive(Debug, Default)]
pub struct Page {
    /// The destination of each link and image, and its line.
    pub links: Vec<(String, usize)>,
    pub anchors: BTreeSet<String>,
}

/// Reads all Markdown files.
///
/// # Errors
/// A file cannot be read.
pub fn read(repository: &Repository) -> Result<Pages, Box<dyn Error>> {
    let files = repository.with_extension("md");
    files
        .map(|file| Ok((file.to_path_buf(), Page::parse(&repository.read(file)?))))
        .collect()
}

impl Page {
    pub fn parse(text: &str) -> Self {
        let mut page = Self::default();
        let mut heading: Option<String> = None;
        for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    let line = 1 + text[..range.start].matches('\n').count();
                    page.links.push((dest_url.into_string(), line));
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => page.add_heading(heading.take()),
                Event::Text(words) | Event::Code(words) => {
                    heading
                        .iter_mut()
                        .for_each(|heading| heading.push_str(&words));
                }
                Event::Html(html) | Event::InlineHtml(html) => page.add_ids(&html),
                _ => {}
            }
        }
        page
    }

    /// Adds an anchor like GitHub and mdBook: letters, digits, `-`, `_`, and a number if repeated.
    fn add_heading(&mut self, heading: Option<String>) {
        let lower = heading
            .unwrap_or_default()
            .trim()
            .to_lowercase()
            .replace(' ', "-");
        let slug: String = lower
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
            .collect();
        let mut anchor = slug.clone();
        let mut repeats = 0;
        while !self.anchors.insert(anchor) {
            repeats += 1;
            anchor = format!("{slug}-{repeats}");
        }
    }

    /// Adds anchors written as `<a id="name"></a>`.
    fn add_ids(&mut self, html: &str) {
        let ids = html
            .split("id=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next());
        self.anchors.extend(ids.map(str::to_owned));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_become_the_anchors_of_github() {
        let page =
            Page::parse("# What is `private`?\n\n## Notes\n\n## Notes\n\n<a id=\"p1\"></a>P1\n");
        let anchors: Vec<&str> = page.anchors.iter().map(String::as_str).collect();
        assert_eq!(anchors, ["notes", "notes-1", "p1", "what-is-private"]);
    }

    #[test]
    fn code_has_no_links() {
        let page = Page::parse("```\n[a](b.md)\n```\n\n`[a](b.md)` and [c][d]\n\n[d]: e.md#f\n");
        assert_eq!(page.links, [("e.md#f".to_owned(), 5)]);
    }
}
