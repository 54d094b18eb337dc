//! The memory of a session, on the heap because its size is known only at run time.

use smolfed_core::session::{Memory, Trainable};
use smolfed_core::train::Workspace;

/// The equivalent of a board's static memory.
pub struct SessionMemory {
    global: Vec<f32>,
    local: Vec<f32>,
    update: Vec<f32>,
    order: Vec<u32>,
    scratch: Vec<f32>,
}

impl SessionMemory {
    /// Allocates memory to train `model` on up to `samples` samples, with this many entries of
    /// scratch.
    #[must_use]
    pub fn new(model: &impl Trainable, samples: usize, scratch: usize) -> Self {
        let parameters = || vec![0.0; model.parameter_count()];
        Self {
            global: vec![0.0; model.global_count()],
            local: parameters(),
            update: parameters(),
            order: vec![0; samples],
            scratch: vec![0.0; scratch],
        }
    }

    /// Returns the memory, for one session at a time.
    pub fn borrow(&mut self) -> Memory<'_> {
        Memory {
            global: &mut self.global,
            work: Workspace {
                local: &mut self.local,
                update: &mut self.update,
                order: &mut self.order,
                scratch: &mut self.scratch,
            },
        }
    }
}

impl std::fmt::Debug for SessionMemory {
    /// Shape only: device data never reach a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SessionMemory({} parameters)", self.global.len())
    }
}
