//! Questions on the line: always 79 bytes. Fields that a kind does not use are zero.

use crate::{
    bytes::{Reader, Writer},
    question::{Bins, Edges, Features, MAX_EDGES, Question},
};

/// Bytes of a question.
pub(super) const QUESTION_BYTES: usize = 15 + 4 * MAX_EDGES;

/// Codes of the bins that samples are counted in.
mod bins {
    pub(super) const CLASSES: u8 = 0;
    pub(super) const TARGET: u8 = 1;
    pub(super) const FEATURE: u8 = 2;
}

/// All fields of a question in wire order, numbers as their bits.
#[derive(Default, PartialEq, Eq)]
struct Fields {
    kind: u8,
    bins: u8,
    edge_count: u8,
    feature: u16,
    feature_count: u16,
    /// Bound of the loss, or lower bound of the features.
    bound: u32,
    upper: u32,
    edges: [u32; MAX_EDGES],
}

impl Fields {
    fn of(question: &Question) -> Self {
        let mut fields = Self {
            kind: question.number(),
            ..Self::default()
        };
        match question {
            Question::Evaluate { bound } => fields.bound = bound.to_bits(),
            Question::Confusion | Question::Count => {}
            Question::Moments(features) => {
                (fields.feature, fields.feature_count) = (features.first(), features.count());
                let (lower, upper) = features.bounds();
                (fields.bound, fields.upper) = (lower.to_bits(), upper.to_bits());
            }
            Question::Histogram(of) | Question::Presence(of) => {
                let edges = match of {
                    Bins::Classes => return fields,
                    Bins::Target(edges) => {
                        fields.bins = bins::TARGET;
                        edges
                    }
                    Bins::Feature(feature, edges) => {
                        (fields.bins, fields.feature) = (bins::FEATURE, *feature);
                        edges
                    }
                };
                // At most 16.
                fields.edge_count = edges.as_slice().len() as u8;
                for (place, edge) in fields.edges.iter_mut().zip(edges.as_slice()) {
                    *place = edge.to_bits();
                }
            }
        }
        fields
    }

    fn question(&self) -> Option<Question> {
        Some(match self.kind {
            1 => {
                let bound = f32::from_bits(self.bound);
                Question::Evaluate { bound }
            }
            2 => Question::Confusion,
            3 => Question::Histogram(self.bins()?),
            4 => {
                let (first, count) = (self.feature, self.feature_count);
                let [lower, upper] = [self.bound, self.upper].map(f32::from_bits);
                Question::Moments(Features::new(first, count, lower, upper).ok()?)
            }
            5 => Question::Presence(self.bins()?),
            6 => Question::Count,
            _ => return None,
        })
    }

    fn bins(&self) -> Option<Bins> {
        if self.bins == bins::CLASSES {
            return Some(Bins::Classes);
        }
        let edges = self.edges.map(f32::from_bits);
        let edges = Edges::new(edges.get(..self.edge_count.into())?).ok()?;
        match self.bins {
            bins::TARGET => Some(Bins::Target(edges)),
            bins::FEATURE => Some(Bins::Feature(self.feature, edges)),
            _ => None,
        }
    }
}

/// Reads a question. `None` if it is invalid, or if it has fields that its kind does not use.
#[inline(never)]
pub(super) fn read(bytes: &[u8; QUESTION_BYTES]) -> Option<Question> {
    let reader = &mut Reader(bytes);
    let mut fields = Fields {
        kind: reader.u8()?,
        bins: reader.u8()?,
        edge_count: reader.u8()?,
        feature: reader.u16()?,
        feature_count: reader.u16()?,
        bound: reader.u32()?,
        upper: reader.u32()?,
        ..Fields::default()
    };
    for edge in &mut fields.edges {
        *edge = reader.u32()?;
    }
    let question = fields.question()?;
    (Fields::of(&question) == fields).then_some(question)
}

pub(super) fn write(question: &Question, writer: &mut Writer<'_>) {
    let fields = Fields::of(question);
    writer
        .u8(fields.kind)
        .u8(fields.bins)
        .u8(fields.edge_count)
        .u16(fields.feature)
        .u16(fields.feature_count)
        .u32(fields.bound)
        .u32(fields.upper);
    for edge in fields.edges {
        writer.u32(edge);
    }
}
