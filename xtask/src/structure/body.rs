//! Definitions, declarations, imports and names of a module.

use std::collections::HashSet;

/// One module, without submodules in separate files.
#[derive(Debug, Default)]
pub struct Body {
    pub items: HashSet<String>,
    pub imports: Vec<Import>,
    /// Distinct paths in code, each with its first line.
    pub paths: Vec<(Vec<String>, usize)>,
    pub children: Vec<Child>,
}

/// A module declared in another one.
#[derive(Debug)]
pub struct Child {
    pub name: String,
    /// Its file, if an attribute names it.
    pub path: Option<String>,
    /// Its content, unless it is in another file.
    pub body: Option<Body>,
}

/// One name of a `use` declaration.
#[derive(Debug)]
pub struct Import {
    pub path: Vec<String>,
    /// `None` for a glob.
    pub name: Option<String>,
    /// Whether it is visible from outside.
    pub public: bool,
    pub line: usize,
}
