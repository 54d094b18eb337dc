//! Figures that are asked for at any time, and by many: devices are visited once a second.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::lock::lock;
use crate::monitor::{Access, Figures, Visit};
use crate::service::Service;
use crate::status::by_reason;

/// How long a visit of all devices, each under its lock, is reused.
const VISIT_INTERVAL: Duration = Duration::from_secs(1);

/// The figures of a coordinator.
#[derive(Debug)]
pub struct Visits {
    service: Arc<Service>,
    last: Mutex<Option<(Instant, Visit)>>,
}

impl Visits {
    /// Nobody was visited yet.
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
        self.service.monitor().figures(self.visit(), access)
    }

    fn visit(&self) -> Visit {
        let mut last = lock(&self.last);
        if let Some((then, visit)) = last.as_ref()
            && then.elapsed() < VISIT_INTERVAL
        {
            return visit.clone();
        }
        let mut visit = Visit {
            unattributed: by_reason(&self.service.unattributed()),
            ..Visit::default()
        };
        self.service.registry().for_each(|_, peer| {
            visit.devices += 1;
            visit.connected += usize::from(peer.is_reachable());
            for (reason, count) in peer.refusals().iter() {
                *visit.refused.entry(reason.to_string()).or_default() += u64::from(count);
            }
        });
        *last = Some((Instant::now(), visit.clone()));
        visit
    }
}
