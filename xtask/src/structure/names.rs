//! The names that the items of one module use: in `use` declarations, in code and in macros.

use std::collections::HashSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree, Visibility};

/// Collects the imports and the paths of one module; visits its items.
#[derive(Default)]
pub struct Names {
    pub imports: Vec<Import>,
    /// Different paths in code, with the first line each is on.
    pub paths: Vec<(Vec<String>, usize)>,
    seen: HashSet<Vec<String>>,
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

impl Names {
    fn import(&mut self, tree: &UseTree, prefix: &[String], public: bool) {
        let line = tree.span().start().line;
        let mut add = |last: Option<String>, name: Option<String>| {
            let mut path = prefix.to_vec();
            path.extend(last.filter(|last| last != "self"));
            let name = name.map(|name| match path.last() {
                Some(last) if name == "self" => last.clone(),
                _ => name,
            });
            self.imports.push(Import {
                path,
                name,
                public,
                line,
            });
        };
        match tree {
            UseTree::Path(tree) => {
                let mut prefix = prefix.to_vec();
                prefix.push(tree.ident.unraw().to_string());
                self.import(&tree.tree, &prefix, public);
            }
            UseTree::Name(tree) => {
                let name = tree.ident.unraw().to_string();
                add(Some(name.clone()), Some(name));
            }
            UseTree::Rename(tree) => {
                add(
                    Some(tree.ident.unraw().to_string()),
                    Some(tree.rename.unraw().to_string()),
                );
            }
            UseTree::Glob(_) => add(None, None),
            UseTree::Group(tree) => {
                for tree in &tree.items {
                    self.import(tree, prefix, public);
                }
            }
        }
    }

    /// Paths in what a macro is given, which is not parsed: names joined by `::`.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let (mut line, mut colons) = (0, 0);
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.path(std::mem::take(&mut path), line);
                        line = ident.span().start().line;
                    }
                    path.push(ident.unraw().to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                other => {
                    self.path(std::mem::take(&mut path), line);
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.path(path, line);
    }

    /// Single lower-case names are mostly locals.
    fn path(&mut self, path: Vec<String>, line: usize) {
        let first = path.first().and_then(|name| name.chars().next());
        if path.len() > 1 || first.is_some_and(char::is_uppercase) {
            self.add(path, line);
        }
    }

    fn add(&mut self, path: Vec<String>, line: usize) {
        if self.seen.insert(path.clone()) {
            self.paths.push((path, line));
        }
    }
}

fn names<T>(segments: &Punctuated<syn::PathSegment, T>) -> Vec<String> {
    segments
        .iter()
        .map(|segment| segment.ident.unraw().to_string())
        .collect()
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item(&mut self, item: &'ast Item) {
        // Modules are visited separately, and what a macro names belongs to its callers.
        let elsewhere = match item {
            Item::Mod(_) => true,
            Item::Macro(item) => item.ident.is_some(),
            _ => only_tests(attributes(item)),
        };
        if !elsewhere {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !only_tests(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.import(&item.tree, &[], !matches!(item.vis, Visibility::Inherited));
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let syn::Expr::Path(function) = call.func.as_ref()
            && function.qself.is_none()
        {
            self.add(names(&function.path.segments), function.span().start().line);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.path(names(&path.segments), path.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }
}

/// `#[test]`, `#[cfg(test)]` or `#[cfg(all(test, ..))]`.
pub fn only_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        if !attribute.path().is_ident("cfg") {
            return attribute.path().is_ident("test");
        }
        let tokens = attribute.meta.require_list().map(|list| &list.tokens);
        let condition = tokens.map(|tokens| tokens.to_string().replace(' ', ""));
        condition.is_ok_and(|words| words == "test" || words.starts_with("all(test,"))
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
