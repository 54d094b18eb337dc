use super::*;

fn shared() -> Shared {
    let nonces = smolfed_core::stream::Root::from_seed(1).stream(smolfed_core::stream::StreamId {
        purpose: smolfed_core::stream::Purpose::SessionNonces,
        round: 0,
        device: 0,
    });
    let registry = crate::registry::Registry::new(
        std::collections::BTreeMap::new(),
        crate::ledgers::KnownLedgers::default(),
        nonces,
    );
    Shared {
        cache: Arc::new(FiguresCache::new(Arc::new(Service::new(registry, 1)))),
        token: None,
        streams: Arc::new(tokio::sync::Semaphore::new(1)),
    }
}

#[test]
fn other_machines_need_a_token() {
    let bind_as = |address: &str, is_public| {
        HttpServer::bind(HttpSettings {
            address: address.parse().unwrap(),
            names: Vec::new(),
            token: None,
            is_public,
        })
    };
    let bind = |address| bind_as(address, false);
    bind_as("0.0.0.0:0", true).unwrap();
    let error = bind("0.0.0.0:0").unwrap_err();
    assert!(
        error.is_bad_input() && error.to_string().contains("--http-token-file"),
        "{error}"
    );
    let first = bind("127.0.0.1:0").unwrap();
    let taken = bind(&first.address().to_string()).unwrap_err();
    assert!(
        !taken.is_bad_input() && taken.to_string().contains("choose another"),
        "{taken}"
    );
}

#[test]
fn figures_of_participation_need_a_token_where_cohorts_are_secret() {
    use crate::monitor::{RunInfo, is_secret};
    use smolfed_engine::tables::CohortSampling;
    for (sampling, is_public) in [
        (CohortSampling::Uniform, false),
        (CohortSampling::Poisson, false),
        (CohortSampling::BlockCyclic, false),
        (CohortSampling::Full, true),
        (CohortSampling::Rotation, true),
    ] {
        let shared = shared();
        let service = shared.cache.service();
        let info = RunInfo {
            is_cohort_secret: is_secret(sampling),
            ..RunInfo::default()
        };
        service.monitor().run_begins(info, &[]);
        service.monitor().round_begins(17);
        let text = |access| metrics::text(&shared.cache.figures(access));
        assert!(text(Access::Operator).contains("smolfed_round_awaited 17"));
        let public = text(Access::Public);
        assert_eq!(public.contains("17"), is_public, "{public}");
        assert_eq!(public.contains("updates"), is_public, "{public}");
        assert_eq!(public.contains("without_updates"), is_public, "{public}");
        assert!(public.contains("smolfed_rounds_done 0"), "{public}");
        assert!(public.ends_with('\n'), "{public}");
    }
}

/// Under local trust, participation in a window is public. A restarted coordinator continues the
/// counts of its records.
#[test]
fn windows_of_time_are_shown_to_anyone() {
    use crate::monitor::{RunInfo, is_secret};
    use smolfed_core::params::LearningRate;
    use smolfed_engine::round::RoundRecord;
    let record = |round, ages: &[u32], wasted| RoundRecord {
        ages: ages.to_vec(),
        wasted: Some(wasted),
        ..RoundRecord::new(round, LearningRate::new(0.1).unwrap())
    };
    let shared = shared();
    let monitor = shared.cache.service().monitor();
    let info = RunInfo {
        is_cohort_secret: is_secret(smolfed_engine::tables::CohortSampling::Buffered),
        ..RunInfo::default()
    };
    monitor.run_begins(info, &[record(0, &[8, 0], 1)]);
    monitor.round_done(&record(1, &[5, 3], 2));
    let figures = shared.cache.figures(Access::Public);
    let text = metrics::text(&figures);
    for line in [
        "smolfed_updates_by_age_total{age=\"0\"} 13",
        "smolfed_updates_by_age_total{age=\"1\"} 3",
        "smolfed_wasted_participations_total 3",
    ] {
        assert!(text.contains(&format!("\n{line}\n")), "{line}: {text}");
    }
    let json = serde_json::to_value(&figures).unwrap();
    let windows = &json["attendance"]["windows"];
    assert_eq!(
        windows["last"],
        serde_json::json!({"ages": [5, 3], "wasted": 2})
    );
    assert_eq!(
        windows["total"],
        serde_json::json!({"ages": [13, 3], "wasted": 3})
    );
}

/// Answers are released under noise, and need no token if a finite ε covers them.
#[test]
fn answers_are_shown_to_anyone_unless_nothing_covers_them() {
    use smolfed_core::params::LearningRate;
    use smolfed_engine::question::{Answer, Estimate};
    use smolfed_engine::round::RoundRecord;
    use smolfed_engine::tables::question::QuestionKind;
    let estimate = |name: &str, value| Estimate {
        name: name.to_owned(),
        value: Some(value),
        interval: [Some(value - 0.25), None],
    };
    let record = |round, epsilon, accuracy| RoundRecord {
        epsilon,
        answers: vec![Answer {
            question: 0,
            kind: QuestionKind::Evaluate,
            name: "evaluate".to_owned(),
            confidence: 0.99,
            answered: estimate("answered", 98.5),
            estimates: vec![estimate("accuracy", accuracy)],
        }],
        ..RoundRecord::new(round, LearningRate::new(0.1).unwrap())
    };
    let shared = shared();
    let monitor = shared.cache.service().monitor();
    let text = |access| metrics::text(&shared.cache.figures(access));
    monitor.run_begins(
        crate::monitor::RunInfo::default(),
        &[record(0, Some(1.0), 0.5)],
    );
    monitor.round_done(&record(4, Some(2.0), 0.75));
    for line in [
        "smolfed_answer{question=\"evaluate\",estimate=\"accuracy\"} 0.75",
        "smolfed_answer_low{question=\"evaluate\",estimate=\"accuracy\"} 0.5",
        "smolfed_answer_round{question=\"evaluate\"} 4.0",
        "smolfed_answer_drifted{question=\"evaluate\"} 0.0",
    ] {
        let text = text(Access::Public);
        assert!(text.contains(&format!("\n{line}\n")), "{line}: {text}");
    }
    assert!(!text(Access::Public).contains("\nsmolfed_answer_high"));
    assert_eq!(monitor.answers(Access::Public).curves[0].points.len(), 2);
    monitor.round_done(&record(5, None, 0.75));
    assert!(!text(Access::Public).contains("smolfed_answer"));
    assert!(monitor.answers(Access::Public).curves.is_empty());
    assert!(text(Access::Operator).contains("smolfed_answer_round{question=\"evaluate\"} 5.0"));
}

/// Connections do not depend on the cohort, so anyone may see a pause.
#[test]
fn a_pause_is_shown_to_anyone() {
    let shared = shared();
    let monitor = shared.cache.service().monitor();
    let text = || metrics::text(&shared.cache.figures(Access::Public));
    assert!(text().contains("\nsmolfed_paused 0"), "{}", text());
    monitor.pauses();
    monitor.second_session();
    monitor.session_conflict();
    for line in [
        &format!(
            "smolfed_build_info{{version=\"{}\"}} 1",
            env!("CARGO_PKG_VERSION")
        ),
        "smolfed_paused 1",
        "smolfed_pauses_total 1",
        "smolfed_second_sessions_total 1",
        "smolfed_session_conflicts_total 1",
    ] {
        assert!(text().contains(&format!("\n{line}")), "{}", text());
    }
    assert_eq!(shared.cache.figures(Access::Public).state, "paused");
    monitor.resumes();
    assert!(text().contains("\nsmolfed_paused 0"), "{}", text());
}

/// A supervisor reads the status, the container's health check the line.
#[test]
fn a_stuck_round_is_not_healthy() {
    assert_eq!(health_of(false).status(), StatusCode::OK);
    assert_eq!(health_of(true).status(), StatusCode::SERVICE_UNAVAILABLE);
}

/// Event streams and silent connections make room for a health check.
#[test]
fn open_connections_do_not_starve_a_health_check() {
    use std::io::{Read, Write};
    use std::time::Duration;
    let settings = HttpSettings {
        address: "127.0.0.1:0".parse().unwrap(),
        names: Vec::new(),
        token: None,
        is_public: false,
    };
    let server = HttpServer::bind(settings).unwrap();
    let address = server.address();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.spawn(server.serve_routes(router(Arc::new(shared()))));
    let connect = |request: &str| {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let limit = Some(Duration::from_secs(10));
        stream.set_read_timeout(limit).unwrap();
        let request = request.replace("HOST", &format!("Host: {address}"));
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    let of_kind = |request: &'static str| (0..40).map(move |_| request);
    let requests = of_kind("GET /events HTTP/1.1\r\nHOST\r\n\r\n").chain(of_kind("GET /he"));
    let _open: Vec<_> = requests.map(connect).collect();
    let mut asked = connect("GET /healthz HTTP/1.1\r\nHOST\r\nConnection: close\r\n\r\n");
    let mut answer = String::new();
    asked.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("ok\n"), "{answer}");
}
