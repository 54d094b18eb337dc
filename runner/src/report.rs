//! The report of a run: one self-contained page, and the plots it is made of.

pub mod html;
pub mod number;
pub mod plot;

#[cfg(test)]
mod markup;
