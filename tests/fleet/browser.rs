//! A headless Chromium, controlled through its DevTools protocol over pipes. Messages are JSON, and
//! end with a zero byte.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::program::TIMEOUT;

/// Names of suitable browsers.
const NAMES: [&str; 4] = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
];

/// A browser with one page.
pub(super) struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Option<String>,
    calls: u64,
    /// Errors and warnings of the page.
    pub(super) complaints: Vec<Value>,
}

impl Browser {
    /// Starts a browser, if the machine has one. CI requires one.
    pub(super) fn start(profile: &Path) -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there =
            |name: &&str| std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
        let Some(name) = NAMES.into_iter().find(is_there) else {
            assert!(std::env::var_os("CI").is_none(), "no browser: {NAMES:?}");
            println!("NOT CHECKED: no browser (apt-get install chromium-headless-shell)");
            return None;
        };
        // The protocol uses descriptors 3 and 4.
        let script = "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1";
        let mut child = Command::new("sh")
            .args(["-c", script, name, "--headless", "--no-sandbox"])
            .args(["--disable-gpu", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell starts");
        let mut browser = Self {
            to: child.stdin.take().unwrap(),
            from: BufReader::new(child.stdout.take().unwrap()),
            child,
            session: None,
            calls: 0,
            complaints: Vec::new(),
        };
        let page = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = json!({ "targetId": page["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", target);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Runtime", "Log", "Page"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Calls a method and waits for its result.
    pub(super) fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.to
            .write_all(format!("{message}\0").as_bytes())
            .expect("the browser listens");
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes).expect("it answers");
            bytes.pop();
            let answer: Value = serde_json::from_slice(&bytes).expect("it answers in JSON");
            if answer["id"] == self.calls {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            let is_complaint = match answer["method"].as_str() {
                Some("Runtime.exceptionThrown") => true,
                Some("Runtime.consoleAPICalled") => answer["params"]["type"] != "log",
                Some("Log.entryAdded") => true,
                _ => false,
            };
            if is_complaint {
                self.complaints.push(answer);
            }
        }
    }

    /// Opens a page in a window of this width.
    pub(super) fn open(&mut self, url: &str, width: u32, scheme: &str) {
        let window = json!({
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false
        });
        self.call("Emulation.setDeviceMetricsOverride", window);
        let scheme = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": scheme }));
        self.call("Page.navigate", json!({ "url": url }));
    }

    /// Evaluates an expression on the page.
    pub(super) fn value(&mut self, expression: &str) -> Value {
        let result = self.call("Runtime.evaluate", json!({ "expression": expression }));
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub(super) fn wait_for(&mut self, expression: &str) {
        let deadline = Instant::now() + TIMEOUT;
        while self.value(expression) != true {
            if Instant::now() > deadline {
                let text = self.value("document.body.innerText");
                panic!("never true: {expression}\n{text}\n{:?}", self.complaints);
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
