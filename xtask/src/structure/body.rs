//! What a module defines, declares, imports and names.

use std::collections::HashSet;

/// One module, without what is in files of their own.
#[derive(Debug, Default)]
pub struct Body {
    pub items: HashSet<String>,
    pub imports: Vec<Import>,
    /// Different paths in code, with the first line each is on.
    pub paths: Vec<(Vec<String>, usize)>,
    pub children: Vec<Child>,
}

/// A module that is declared in another one.
#[derive(Debug)]
pub struct Child {
    pub name: String,
    /// Its file, if an attribute names it.
    pub path: Option<String>,
    /// What is in it, unless that is in another file.
    pub body: Option<Body>,
}

/// One name of a `use` declaration.
#[derive(Debug)]
pub struct Import {
    pub path: Vec<String>,
    /// `None` for a glob.
    pub name: Option<String>,
    /// It can be seen from outside.
    pub public: bool,
    pub line: usize,
}
