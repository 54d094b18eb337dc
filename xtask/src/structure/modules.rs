//! The modules of one target: the file each is in, what it defines, imports and names.
//!
//! Types are not inferred: what is known of a path is where its modules lead. That is enough to say
//! which file an import needs.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::{Path, PathBuf};

use syn::ext::IdentExt;
use syn::visit::Visit;
use syn::{Attribute, Item};

use super::names::{Import, Names, only_tests};

/// Chains of re-exports are followed this far: a guard against imports that name themselves.
const MAX_HOPS: usize = 16;

/// A target's modules; the first is its root.
#[derive(Debug, Default)]
pub struct Modules(Vec<Module>);

/// One module, without what only tests see.
#[derive(Debug)]
pub struct Module {
    pub file: PathBuf,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    items: BTreeSet<String>,
    pub imports: Vec<Import>,
    /// Paths in code, with the lines they are on.
    pub paths: Vec<(Vec<String>, usize)>,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Module(usize),
    /// An item of this module.
    Item(usize),
}

impl Modules {
    /// Reads the target whose root file is `root`.
    ///
    /// # Errors
    /// A file cannot be read or parsed.
    pub fn read(root: &Path) -> Result<Self, Box<dyn Error>> {
        let mut modules = Self::default();
        let folder = root.parent().unwrap_or(Path::new("")).to_path_buf();
        modules.add_file(root, folder, None)?;
        Ok(modules)
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &Module)> {
        self.0.iter().enumerate()
    }

    pub fn file(&self, module: usize) -> &Path {
        &self.0[module].file
    }

    /// Whether `module` is below `ancestor`.
    pub fn is_below(&self, module: usize, ancestor: usize) -> bool {
        let mut parents = std::iter::successors(self.0[module].parent, |&at| self.0[at].parent);
        parents.any(|parent| parent == ancestor)
    }

    /// What `path` means in module `from`; `None` for other crates, locals and methods.
    pub fn resolve(&self, from: usize, path: &[String]) -> Option<Target> {
        self.resolve_within(from, path, MAX_HOPS)
    }

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
                // What macros define is not seen, but must be in that module.
                name => self
                    .lookup(module, name, hops)
                    .unwrap_or(Target::Item(module)),
            };
            rest = after;
        }
        Some(target)
    }

    fn lookup(&self, module: usize, name: &str, hops: usize) -> Option<Target> {
        let hops = hops.checked_sub(1)?;
        let found = &self.0[module];
        if let Some(&child) = found.children.get(name) {
            return Some(Target::Module(child));
        }
        if found.items.contains(name) {
            return Some(Target::Item(module));
        }
        let named = |import: &&Import| import.name.as_deref() == Some(name);
        if let Some(import) = found.imports.iter().find(named) {
            return self.resolve_within(module, &import.path, hops);
        }
        found
            .imports
            .iter()
            .filter(|import| import.name.is_none())
            .find_map(
                |glob| match self.resolve_within(module, &glob.path, hops)? {
                    Target::Module(other) if other != module => self.lookup(other, name, hops),
                    _ => None,
                },
            )
    }

    /// Adds the module in `file`, whose children's files are in `folder`.
    fn add_file(
        &mut self,
        file: &Path,
        folder: PathBuf,
        parent: Option<usize>,
    ) -> Result<usize, Box<dyn Error>> {
        let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        let parsed = syn::parse_file(&text).map_err(|e| format!("{}: {e}", file.display()))?;
        self.add(file, folder, parent, parsed.items)
    }

    fn add(
        &mut self,
        file: &Path,
        folder: PathBuf,
        parent: Option<usize>,
        items: Vec<Item>,
    ) -> Result<usize, Box<dyn Error>> {
        let index = self.0.len();
        let mut names = Names::default();
        for item in &items {
            names.visit_item(item);
        }
        self.0.push(Module {
            file: file.canonicalize()?,
            parent,
            children: BTreeMap::new(),
            items: items.iter().filter_map(defined).collect(),
            imports: names.imports,
            paths: names.paths,
        });
        for item in items {
            let Item::Mod(item) = item else { continue };
            if only_tests(&item.attrs) {
                continue;
            }
            let name = item.ident.unraw().to_string();
            let child = match item.content {
                Some((_, items)) => self.add(file, folder.join(&name), Some(index), items)?,
                None => {
                    let (file, folder) = place(file, &folder, &name, &item.attrs);
                    self.add_file(&file, folder, Some(index))?
                }
            };
            self.0[index].children.insert(name, child);
        }
        Ok(index)
    }
}

/// The file of a module declared in `declared_in`, and the folder of that module's children.
fn place(
    declared_in: &Path,
    folder: &Path,
    name: &str,
    attributes: &[Attribute],
) -> (PathBuf, PathBuf) {
    let parent = |path: &Path| path.parent().unwrap_or(Path::new("")).to_path_buf();
    if let Some(path) = attributes.iter().find_map(path_attribute) {
        let file = parent(declared_in).join(path);
        let folder = parent(&file);
        return (file, folder);
    }
    let file = folder.join(format!("{name}.rs"));
    if file.exists() {
        return (file, folder.join(name));
    }
    (folder.join(name).join("mod.rs"), folder.join(name))
}

fn path_attribute(attribute: &Attribute) -> Option<String> {
    let pair = attribute
        .meta
        .require_name_value()
        .ok()
        .filter(|pair| pair.path.is_ident("path"))?;
    match &pair.value {
        syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Str(path),
            ..
        }) => Some(path.value()),
        _ => None,
    }
}

fn defined(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.unraw().to_string())
}
