use std::os::unix::fs::PermissionsExt;

use super::*;

fn log(detail: Detail, format: Format) -> (tempfile::TempDir, Log, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("serve.log");
    let settings = LogSettings {
        detail,
        format,
        file: Some(path.clone()),
    };
    let log = Log::onto(settings, Box::new(io::sink()));
    (dir, log.unwrap(), path)
}

#[test]
fn the_private_file_names_devices_and_standard_error_does_not() {
    let mut line = Line::new(Level::INFO);
    line.message = "1 missing".to_owned();
    line.private = Some("device 17: too late".to_owned());
    for format in [Format::Text, Format::Json] {
        assert!(!line.format(format, false).contains("17: "));
        assert!(line.format(format, true).contains("device 17"));
    }
}

#[test]
fn a_line_cannot_be_ended_from_outside() {
    let mut line = Line::new(Level::INFO);
    line.message = "a\nb\u{1b}[2J".to_owned();
    for format in [Format::Text, Format::Json] {
        let text = line.format(format, false);
        assert_eq!(
            (text.matches('\n').count(), text.contains('\u{1b}')),
            (1, false)
        );
    }
}

#[test]
fn events_are_written_limited_and_counted() {
    let (_dir, log, path) = log(Detail::Info, Format::Json);
    tracing::subscriber::with_default(log.clone(), || {
        for round in 0..417 {
            tracing::info!(reason = "too late", round, private = "device 3", "late");
        }
        tracing::debug!(reason = "detail", "not written");
    });
    log.flush(true);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 6, "{text}");
    assert_eq!(lines[4]["round"], 4);
    assert_eq!(lines[5]["left_out"], 412);
    assert!(text.contains("and 412 more"), "{text}");
}

#[test]
fn a_file_that_was_renamed_is_left_and_one_that_others_can_read_is_refused() {
    let (dir, log, path) = log(Detail::Info, Format::Text);
    let log_line = |text: &str| {
        tracing::subscriber::with_default(log.clone(), || tracing::info!("{text}"));
    };
    log_line("before");
    std::fs::rename(&path, dir.path().join("old.log")).unwrap();
    log.reopen();
    log_line("after");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.ends_with("INFO after\n") && !text.contains("before"),
        "{text}"
    );
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = open(&log.0.settings).unwrap_err().to_string();
    assert!(error.contains("chmod 600"), "{error}");
}
