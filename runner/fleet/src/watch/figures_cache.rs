//! Figures that are asked for at any time, and by many: devices are counted once a second.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::lock::lock;
use crate::monitor::{Access, DeviceCounts, Figures};
use crate::service::Service;
use crate::status::by_reason;

/// How long the counts of all devices, each under its lock, are reused.
const MAX_AGE: Duration = Duration::from_secs(1);

/// The figures of a coordinator.
#[derive(Debug)]
pub struct FiguresCache {
    service: Arc<Service>,
    last: Mutex<Option<(Instant, DeviceCounts)>>,
}

impl FiguresCache {
    /// Nothing was counted yet.
    #[must_use]
    pub const fn new(service: Arc<Service>) -> Self {
        let last = Mutex::new(None);
        Self { service, last }
    }

    /// The coordinator.
    #[must_use]
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// The figures now, as far as the asker may see them.
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
