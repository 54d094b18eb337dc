//! Modules of one target: their files, and the targets of their paths.
//!
//! Types are not inferred: a path is known only as far as it leads through modules. This is enough
//! to find the file that an import needs.

use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};

use super::body::{Body, Import};
use super::sources::{Place, Sources};

/// Maximum length of a chain of re-exports, which guards against imports that name themselves.
const MAX_HOPS: usize = 16;

/// A target's modules. The first is its root, and each comes after its parent.
#[derive(Debug, Default)]
pub struct Modules<'a>(Vec<Module<'a>>);

/// One module, without test-only code.
#[derive(Debug)]
struct Module<'a> {
    name: &'a str,
    file: PathBuf,
    parent: Option<usize>,
    children: HashMap<&'a str, usize>,
    body: &'a Body,
    /// The first import of each name.
    imports: HashMap<&'a str, &'a Import>,
    globs: Vec<&'a Import>,
    /// The modules whose names they import.
    opened: Vec<usize>,
}

/// Target of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Module(usize),
    /// An item of this module.
    Item(usize),
}

/// A path in one module that needs an item of another.
#[derive(Debug)]
pub struct Reference<'a> {
    pub from: usize,
    pub to: usize,
    pub path: &'a [String],
    pub line: usize,
    /// Whether this is a `use` visible from outside.
    pub public: bool,
}

impl<'a> Modules<'a> {
    /// Returns the modules of the target with the root file `root`.
    ///
    /// # Errors
    /// A file is not in `sources`.
    pub fn of(root: &Path, sources: &'a Sources) -> Result<Self, Box<dyn Error>> {
        let mut modules = Self::default();
        modules.add(
            "crate",
            &Place::root(root),
            None,
            sources.of(root)?,
            sources,
        )?;
        modules.open_globs();
        Ok(modules)
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    pub fn file(&self, module: usize) -> &Path {
        &self.0[module].file
    }

    pub fn parent(&self, module: usize) -> Option<usize> {
        self.0[module].parent
    }

    /// Returns the path from the root: `crate::a::b`.
    pub fn path(&self, module: usize) -> String {
        let Module { name, parent, .. } = &self.0[module];
        parent.map_or_else(
            || (*name).to_owned(),
            |parent| format!("{}::{name}", self.path(parent)),
        )
    }

    pub fn name(&self, module: usize) -> &str {
        self.0[module].name
    }

    /// Returns the number of modules declared in `module`.
    pub fn children(&self, module: usize) -> usize {
        self.0[module].children.len()
    }

    /// Iterates over `module`, its parent, its grandparent, and so on.
    pub fn ancestry(&self, module: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(module), |&at| self.0[at].parent)
    }

    /// Iterates over all paths that lead to items of other modules.
    pub fn references(&self) -> impl Iterator<Item = Reference<'a>> {
        let all = self.0.iter().enumerate().flat_map(|(from, module)| {
            let imports = module.body.imports.iter();
            let imports =
                imports.map(|import| (import.path.as_slice(), import.line, import.public));
            let paths = module.body.paths.iter();
            let paths = paths.map(|(path, line)| (path.as_slice(), *line, false));
            imports.chain(paths).map(move |found| (from, found))
        });
        all.filter_map(|(from, (path, line, public))| {
            match self.resolve_within(from, path, MAX_HOPS)? {
                Target::Item(to) if to != from => Some(Reference {
                    from,
                    to,
                    path,
                    line,
                    public,
                }),
                _ => None,
            }
        })
    }

    /// Resolves `path` in module `from`. Returns `None` for other crates, locals and methods.
    fn resolve_within(&self, from: usize, path: &[String], hops: usize) -> Option<Target> {
        let (first, mut rest) = path.split_first()?;
        let mut target = match first.as_str() {
            "crate" => Target::Module(0),
            "self" => Target::Module(from),
            "super" => Target::Module(self.0[from].parent?),
            name => self.lookup(from, name, hops)?,
        };
        while let (Target::Module(module), Some((name, after))) = (target, rest.split_first()) {
            target = match name.as_str() {
                "super" => Target::Module(self.0[module].parent?),
                "self" => target,
                // Macro definitions are not visible, but must be in that module.
                name => self
                    .lookup(module, name, hops)
                    .unwrap_or(Target::Item(module)),
            };
            rest = after;
        }
        Some(target)
    }

    /// Looks for a name in a module, and then in those whose names it imports with `*`.
    fn lookup(&self, module: usize, name: &str, hops: usize) -> Option<Target> {
        let hops = hops.checked_sub(1)?;
        let mut searched = vec![module];
        let mut next = 0;
        while let Some(&module) = searched.get(next) {
            let found = &self.0[module];
            if let Some(&child) = found.children.get(name) {
                return Some(Target::Module(child));
            }
            if found.body.items.contains(name) {
                return Some(Target::Item(module));
            }
            if let Some(import) = found.imports.get(name) {
                return self.resolve_within(module, &import.path, hops);
            }
            for &other in &found.opened {
                if !searched.contains(&other) {
                    searched.push(other);
                }
            }
            next += 1;
        }
        None
    }

    /// Resolves the imports with `*`. Their paths may begin with a name from another one, so this
    /// repeats until nothing changes.
    fn open_globs(&mut self) {
        loop {
            let opened: Vec<Vec<usize>> = (0..self.0.len())
                .map(|module| self.opened(module))
                .collect();
            let mut has_changed = false;
            for (module, opened) in self.0.iter_mut().zip(opened) {
                has_changed |= module.opened != opened;
                module.opened = opened;
            }
            if !has_changed {
                return;
            }
        }
    }

    fn opened(&self, module: usize) -> Vec<usize> {
        let globs = self.0[module].globs.iter();
        let targets = globs.filter_map(|glob| self.resolve_within(module, &glob.path, MAX_HOPS));
        targets
            .filter_map(|target| match target {
                Target::Module(other) if other != module => Some(other),
                _ => None,
            })
            .collect()
    }

    fn add(
        &mut self,
        name: &'a str,
        place: &Place,
        parent: Option<usize>,
        body: &'a Body,
        sources: &'a Sources,
    ) -> Result<usize, Box<dyn Error>> {
        let index = self.0.len();
        let (named, globs): (Vec<_>, Vec<_>) = body
            .imports
            .iter()
            .partition(|import| import.name.is_some());
        let mut imports = HashMap::new();
        for import in named {
            let name = import.name.as_deref().unwrap_or_default();
            imports.entry(name).or_insert(import);
        }
        self.0.push(Module {
            name,
            file: place.file.canonicalize()?,
            parent,
            children: HashMap::new(),
            body,
            imports,
            globs,
            opened: Vec::new(),
        });
        for child in &body.children {
            let place = place.child(child);
            let body = match &child.body {
                Some(body) => body,
                None => sources.of(&place.file)?,
            };
            let added = self.add(&child.name, &place, Some(index), body, sources)?;
            self.0[index].children.insert(&child.name, added);
        }
        Ok(index)
    }
}
