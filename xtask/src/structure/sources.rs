//! Rust files, each parsed once and in parallel: the definitions and names of their modules.

use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};

use super::body::{Body, Child};
use super::names;

/// Content of each file, without test-only code.
#[derive(Debug, Default)]
pub struct Sources(HashMap<PathBuf, Body>);

/// Location of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub file: PathBuf,
    /// Folder of its children's files.
    pub folder: PathBuf,
}

impl Sources {
    /// Reads the files of all modules of the targets with the root files `roots`.
    ///
    /// # Errors
    /// A file cannot be read or parsed.
    pub fn read(roots: &[PathBuf]) -> Result<Self, Box<dyn Error>> {
        let mut sources = Self::default();
        let mut open: Vec<Place> = roots.iter().map(|root| Place::root(root)).collect();
        while !open.is_empty() {
            let mut files: Vec<&Path> = open.iter().map(|place| place.file.as_path()).collect();
            files.sort_unstable();
            files.dedup();
            files.retain(|&file| !sources.0.contains_key(file));
            sources.0.extend(parse_all(&files)?);
            let mut next = Vec::new();
            for place in &open {
                declared_by(sources.of(&place.file)?, place, &mut next);
            }
            open = next;
        }
        Ok(sources)
    }

    /// # Errors
    /// The file was not read.
    pub fn of(&self, file: &Path) -> Result<&Body, Box<dyn Error>> {
        let unknown = || format!("{}: not read", file.display()).into();
        self.0.get(file).ok_or_else(unknown)
    }
}

impl Place {
    pub fn root(file: &Path) -> Self {
        Self {
            file: file.to_path_buf(),
            folder: folder_of(file),
        }
    }

    /// Returns the location of a module declared in this one.
    pub fn child(&self, child: &Child) -> Self {
        if child.body.is_some() {
            return Self {
                file: self.file.clone(),
                folder: self.folder.join(&child.name),
            };
        }
        if let Some(path) = &child.path {
            return Self::root(&folder_of(&self.file).join(path));
        }
        let folder = self.folder.join(&child.name);
        let file = folder.with_extension("rs");
        let file = if file.exists() {
            file
        } else {
            folder.join("mod.rs")
        };
        Self { file, folder }
    }
}

fn folder_of(file: &Path) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).to_path_buf()
}

/// Finds the modules in separate files declared by `body`.
fn declared_by(body: &Body, place: &Place, found: &mut Vec<Place>) {
    for child in &body.children {
        let place = place.child(child);
        match &child.body {
            Some(body) => declared_by(body, &place, found),
            None => found.push(place),
        }
    }
}

fn parse_all(files: &[&Path]) -> Result<Vec<(PathBuf, Body)>, String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let every = |first: usize| files.iter().skip(first).step_by(threads);
    let parse_from = |first: usize| every(first).map(|file| parse(file)).collect::<Vec<_>>();
    let parsed = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|first| scope.spawn(move || parse_from(first)))
            .collect();
        let joined = running.into_iter().map(|thread| {
            let lost = |_| vec![Err("a thread that parses files panicked".to_owned())];
            thread.join().unwrap_or_else(lost)
        });
        joined.flatten().collect::<Vec<_>>()
    });
    parsed.into_iter().collect()
}

fn parse(file: &Path) -> Result<(PathBuf, Body), String> {
    let text =
        std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let body = names::parse(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok((file.to_path_buf(), body))
}
