//! The ranks (processes) that this process was started with: over MPI, or this one alone.

#[cfg(feature = "mpi")]
use crate::launch::Launch;
#[cfg(feature = "mpi")]
use crate::mpi::World;
use smolfed_engine::ranks::{Alone, Communicator, ConnectError};

/// The ranks that this process was started with: by itself, unless a launcher started several and
/// smolfed was built with the feature `mpi`.
///
/// # Errors
/// [`ConnectError`].
pub fn connect() -> Result<Box<dyn Communicator + Send>, ConnectError> {
    #[cfg(feature = "mpi")]
    if Launch::of_this_process().is_some_and(|launch| launch.count > 1) {
        return Ok(Box::new(World::new()?));
    }
    Ok(Box::new(Alone))
}
