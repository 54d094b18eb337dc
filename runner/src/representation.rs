//! What an encoder's representations are worth, and what they look like: figures of a simulation, which
//! read labels and private samples without noise.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`eigen`] | eigenvalues of small symmetric matrices; the nearest correlation matrix |

pub mod eigen;
