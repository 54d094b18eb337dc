//! The launcher, such as `mpirun` or `srun`, that started this process among others, and the
//! warning if these processes do not know of each other. Launchers tell their processes by
//! variables of the environment, before MPI is initialised and without it.

/// The variables in which launchers say how many processes they started, and which one this is.
const VARIABLES: [[&str; 2]; 4] = [
    // Open MPI.
    ["OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"],
    // MPICH and what is made of it, also under srun with PMI-2.
    ["PMI_SIZE", "PMI_RANK"],
    // Other libraries, such as MVAPICH.
    ["MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"],
    // srun with PMIx, which has no variable for the size. Those of a batch script, which is one
    // process, have other names.
    ["SLURM_STEP_NUM_TASKS", "SLURM_PROCID"],
];

/// What a launcher says of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Processes that were started together.
    pub count: usize,
    /// Which one this is, from 0.
    pub rank: usize,
}

impl Launch {
    /// The launch described by this process's environment, or `None` if no launcher started it.
    #[must_use]
    pub fn of_this_process() -> Option<Self> {
        Self::of(|name| std::env::var(name).ok())
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        VARIABLES.iter().find_map(|names| {
            let [count, rank] = names.map(|name| variable(name)?.parse().ok());
            Some(Self {
                count: count?,
                rank: rank?,
            })
        })
    }

    /// What to know where these processes do not know of each other.
    #[must_use]
    pub fn warning(&self) -> String {
        let count = self.count;
        let reason = match cfg!(feature = "mpi") {
            true => {
                "the MPI library of this smolfed does not know their launcher: start them with the \
                 `mpirun` of that library"
            }
            false => {
                "this smolfed was built without MPI: `cargo build --release --features mpi` builds \
                 one whose processes share a run"
            }
        };
        format!("{count} processes run {count} independent copies: {reason}")
    }

    /// Whether this process is the one of its ranks that prints: all are, where they do not know of
    /// each other.
    #[must_use]
    pub fn is_to_print() -> bool {
        let is_first = || Self::of_this_process().is_none_or(|launch| launch.rank == 0);
        !cfg!(feature = "mpi") || is_first()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(variables: &[(&str, &str)]) -> Option<Launch> {
        Launch::of(|name| {
            let mut found = variables.iter().filter(|(other, _)| *other == name);
            found.next().map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn launchers_are_recognised() {
        let third = Launch { count: 4, rank: 2 };
        for [count, rank] in VARIABLES {
            assert_eq!(launch(&[(count, "4"), (rank, "2")]), Some(third), "{count}");
            assert_eq!(launch(&[(count, "4")]), None);
            assert_eq!(launch(&[(count, "four"), (rank, "2")]), None);
        }
        assert_eq!(launch(&[]), None);
        let warning = third.warning();
        assert!(warning.contains("4 independent copies"), "{warning}");
    }
}
