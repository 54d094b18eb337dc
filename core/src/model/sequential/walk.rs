//! The forward and backward passes through all layers.
//!
//! Both passes are inlined into the code that the kernel crates compile for wider vectors. The
//! tests of this crate call them instead: inlined into each test, they took three minutes to
//! compile.

use super::{
    super::error::ModelError,
    Sequential,
    pass::{Backward, Forward, last, last_mut, split_last_mut},
    pool,
};

/// The parts of scratch memory.
pub(super) struct Parts<'a> {
    pub(super) prepared: &'a mut [f32],
    pub(super) sums: &'a mut [f32],
    pub(super) work: &'a mut [f32],
    pub(super) tape: &'a mut [f32],
    pub(super) derivatives: [&'a mut [f32]; 2],
}

impl Sequential {
    /// Splits scratch memory, without the parts of the backward pass unless it is for training.
    #[inline(always)]
    pub(super) fn parts<'a>(&self, scratch: &'a mut [f32], is_training: bool) -> Option<Parts<'a>> {
        let (sums, derivatives) = match is_training {
            true => (self.memory.sums, self.memory.derivatives),
            false => (0, 0),
        };
        let (prepared, rest) = scratch.split_at_mut_checked(self.memory.prepared)?;
        let (work, rest) = rest.split_at_mut_checked(self.memory.work)?;
        let (tape, rest) = rest.split_at_mut_checked(self.memory.tape)?;
        let (sums, rest) = rest.split_at_mut_checked(sums)?;
        let (a, rest) = rest.split_at_mut_checked(derivatives)?;
        let (b, _) = rest.split_at_mut_checked(derivatives)?;
        Some(Parts {
            prepared,
            sums,
            work,
            tape,
            derivatives: [a, b],
        })
    }

    /// Computes the values of all layers from the parameters, once for all samples.
    #[inline(always)]
    pub(super) fn prepare(&self, parameters: &[f32], prepared: &mut [f32]) {
        let (mut parameters, mut prepared) = (parameters, prepared);
        for place in self.places() {
            let own = parameters.split_at_checked(place.parameter_count());
            let room = prepared.split_at_mut_checked(place.prepared_count());
            let (Some((own, after)), Some((room, free))) = (own, room) else {
                return;
            };
            place.prepare(own, room);
            (parameters, prepared) = (after, free);
        }
    }

    /// Writes the sums over all samples to the gradient.
    #[inline(always)]
    pub(super) fn finish(&self, sums: &[f32], gradient: &mut [f32]) {
        let (mut sums, mut gradient) = (sums, gradient);
        for place in self.places() {
            let own = sums.split_at_checked(place.sums_count());
            let room = gradient.split_at_mut_checked(place.parameter_count());
            let (Some((own, others)), Some((room, after))) = (own, room) else {
                return;
            };
            place.finish(own, room);
            (sums, gradient) = (others, after);
        }
    }

    /// Computes the results of all layers for one sample. The scores are the last entries of the
    /// tape.
    ///
    /// # Errors
    /// [`ModelError::Symbol`].
    #[cfg_attr(not(test), inline(always))]
    pub(super) fn forward(
        &self,
        parameters: &[f32],
        features: &[f32],
        parts: &mut Parts<'_>,
    ) -> Result<(), ModelError> {
        let (mut parameters, mut prepared) = (parameters, &*parts.prepared);
        let mut end = 0;
        for place in self.places() {
            let own = parameters.split_at_checked(place.parameter_count());
            let ready = prepared.split_at_checked(place.prepared_count());
            let tape = parts.tape.split_at_mut_checked(end);
            let (Some((own, after)), Some((ready, others)), Some((before, tape))) =
                (own, ready, tape)
            else {
                break;
            };
            let region = tape.get_mut(..place.tape_count()).unwrap_or_default();
            if place.is_in_place() {
                pool::rectify(last_mut(before, place.output.count()));
            } else {
                let input = match place.below {
                    None => features,
                    Some(_) => last(before, place.input.count()),
                };
                place.forward(Forward {
                    parameters: own,
                    prepared: ready,
                    input,
                    work: parts.work,
                    region,
                })?;
            }
            end += place.tape_count();
            (parameters, prepared) = (after, others);
        }
        Ok(())
    }

    /// Adds the gradient of one sample, from the derivatives with respect to its scores, which are
    /// the first entries of the first of `parts.derivatives`.
    #[cfg_attr(not(test), inline(always))]
    pub(super) fn backward(
        &self,
        parameters: &[f32],
        features: &[f32],
        parts: Parts<'_>,
        gradient: &mut [f32],
    ) {
        let Parts {
            prepared,
            sums,
            work,
            mut tape,
            derivatives: [mut above, mut below],
        } = parts;
        let (mut prepared, mut sums) = (&*prepared, sums);
        let mut end = self.parameters;
        for index in (0..self.count).rev() {
            let Some(place) = self.place(index) else {
                return;
            };
            let start = end.saturating_sub(place.parameter_count());
            let tapes = split_last_mut(tape, place.tape_count());
            let (Some(own), Some(own_gradient), Some((before, region))) = (
                parameters.get(start..end),
                gradient.get_mut(start..end),
                tapes,
            ) else {
                return;
            };
            let ready = last(prepared, place.prepared_count());
            prepared = prepared
                .get(..prepared.len() - ready.len())
                .unwrap_or_default();
            let Some((other_sums, own_sums)) = split_last_mut(sums, place.sums_count()) else {
                return;
            };
            sums = other_sums;
            end = start;
            let (count, room) = (place.output.count(), place.input.count());
            let derivatives = above.get_mut(..count).unwrap_or_default();
            if place.is_in_place() {
                pool::rectify_backward(last(before, count), derivatives);
            } else {
                let is_first = place.below.is_none();
                let input_derivatives =
                    (!is_first).then(|| below.get_mut(..room).unwrap_or_default());
                place.backward(Backward {
                    parameters: own,
                    prepared: ready,
                    input: if is_first {
                        features
                    } else {
                        last(before, room)
                    },
                    region,
                    derivatives,
                    work,
                    gradient: own_gradient,
                    sums: own_sums,
                    input_derivatives,
                });
                (above, below) = (below, above);
            }
            tape = before;
        }
    }
}
