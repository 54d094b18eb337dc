//! Cached figures for frequent requests: devices are counted once per second.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::lock::lock;
use crate::monitor::{Access, DeviceCounts, Figures};
use crate::service::Service;
use crate::status::by_reason;

/// Time for which the counts of all devices, each behind a lock, are reused.
const MAX_AGE: Duration = Duration::from_secs(1);

/// The figures of a coordinator.
#[derive(Debug)]
pub struct FiguresCache {
    service: Arc<Service>,
    last: Mutex<Option<(Instant, DeviceCounts)>>,
}

impl FiguresCache {
    /// Returns a cache without counts.
    #[must_use]
    pub const fn new(service: Arc<Service>) -> Self {
        let last = Mutex::new(None);
        Self { service, last }
    }

    /// Returns the coordinator's service.
    #[must_use]
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// Returns the current figures that the client may see.
    pub fn figures(&self, access: Access) -> Figures {
        self.service.monitor().figures(self.device_counts(), access)
    }

    fn device_counts(&self) -> DeviceCounts {
        let mut last = lock(&self.last);
        if let Some((then, counts)) = last.as_ref()
            && then.elapsed() < MAX_AGE
        {
            return counts.clone();
        }
        let mut counts = DeviceCounts {
            unattributed: by_reason(&self.service.unattributed()),
            ..DeviceCounts::default()
        };
        self.service.registry().for_each(|_, peer| {
            counts.devices += 1;
            counts.connected += usize::from(peer.is_reachable());
            for (reason, count) in peer.refusals().iter() {
                *counts.refused.entry(reason.to_string()).or_default() += u64::from(count);
            }
        });
        *last = Some((Instant::now(), counts.clone()));
        counts
    }
}
