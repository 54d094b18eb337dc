//! Cache for the views of a batch.
//!
//! The loss requests the views of a batch twice, so that a board need not store them. A desktop has
//! the memory, and making a view takes as long as learning from it.

use std::cell::RefCell;

use smolfed_core::contrast::Views;

/// Caches views while they are requested again in the same order.
#[derive(Debug)]
pub struct ViewCache<V> {
    views: V,
    kept: RefCell<Batch>,
}

/// Requests since the batch began.
#[derive(Debug, Default)]
struct Batch {
    names: Vec<(u32, usize)>,
    values: Vec<f32>,
    /// Index of the next view, once the batch is repeated.
    next: Option<usize>,
}

impl<V> ViewCache<V> {
    /// Wraps `views`.
    pub fn new(views: V) -> Self {
        Self {
            views,
            kept: RefCell::default(),
        }
    }
}

impl<V: Views> Views for ViewCache<V> {
    fn sample_count(&self) -> usize {
        self.views.sample_count()
    }

    fn pair_count(&self) -> usize {
        self.views.pair_count()
    }

    fn begin_pass(&mut self, pass: u32) {
        self.kept = RefCell::default();
        self.views.begin_pass(pass);
    }

    fn write(&self, sample: u32, number: usize, view: &mut [f32]) {
        let name = (sample, number);
        let batch = &mut *self.kept.borrow_mut();
        let place = match batch.next {
            Some(next) => next,
            // Back at the first view of the batch.
            None if batch.names.first() == Some(&name) => 0,
            None => usize::MAX,
        };
        if batch.names.get(place) == Some(&name)
            && let Some(kept) = batch.values.chunks_exact(view.len().max(1)).nth(place)
        {
            view.copy_from_slice(kept);
            batch.next = Some(place + 1);
            return;
        }
        if batch.next.is_some() {
            // A new batch.
            batch.names.clear();
            batch.values.clear();
            batch.next = None;
        }
        self.views.write(sample, number, view);
        batch.names.push(name);
        batch.values.extend_from_slice(view);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Counts how often a view is made.
    struct Counted(Cell<usize>, u32);

    impl Views for Counted {
        fn sample_count(&self) -> usize {
            9
        }
        fn pair_count(&self) -> usize {
            1
        }
        fn begin_pass(&mut self, pass: u32) {
            self.1 = pass;
        }
        fn write(&self, sample: u32, number: usize, view: &mut [f32]) {
            self.0.set(self.0.get() + 1);
            view.copy_from_slice(&[sample as f32, number as f32, self.1 as f32]);
        }
    }

    #[test]
    fn views_are_made_once_a_batch_and_are_the_same() {
        let mut kept = ViewCache::new(Counted(Cell::new(0), 0));
        let mut view = [0.0; 3];
        for pass in 0..2 {
            kept.begin_pass(pass);
            for batch in [&[4, 2, 7][..], &[4], &[1, 0]] {
                for _ in 0..2 {
                    for (sample, number) in batch.iter().flat_map(|s| [(*s, 0), (*s, 1)]) {
                        kept.write(sample, number, &mut view);
                        assert_eq!(view, [sample as f32, number as f32, pass as f32]);
                    }
                }
            }
        }
        assert_eq!(kept.views.0.get(), 2 * 2 * 6);
    }

    #[test]
    fn a_batch_that_is_left_early_does_no_harm() {
        let kept = ViewCache::new(Counted(Cell::new(0), 0));
        let mut view = [0.0; 3];
        for sample in [3, 5, 3, 8, 5, 3, 3] {
            kept.write(sample, 0, &mut view);
            assert_eq!(view[0], sample as f32);
        }
    }
}
