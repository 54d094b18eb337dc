//! The archives (packed folders) of the C library: their files, licences and versions.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::library::Library;
use super::machine::Machine;
use crate::toolchain::{root, target_dir};

/// Files and folders next to a target's library.
const FILES: [(&str, &str); 11] = [
    ("c/include/smolfed.h", "include/smolfed.h"),
    ("c/README.md", "README.md"),
    ("c/examples", "examples"),
    ("c/packages/minimal", "examples/minimal"),
    ("c/packages/cmake/CMakeLists.txt", "CMakeLists.txt"),
    (
        "c/packages/cmake/smolfed-config.cmake",
        "lib/cmake/smolfed/smolfed-config.cmake",
    ),
    (
        "c/packages/cmake/smolfed-config-version.cmake",
        "lib/cmake/smolfed/smolfed-config-version.cmake",
    ),
    (
        "c/packages/cmake/smolfed-target.cmake",
        "lib/cmake/smolfed/smolfed-target.cmake",
    ),
    ("c/packages/make/smolfed.mk", "smolfed.mk"),
    LICENCES[0],
    LICENCES[1],
];

/// Licence files of every archive.
pub const LICENCES: [(&str, &str); 2] = [
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("LICENSE-APACHE", "LICENSE-APACHE"),
];

/// The file with the licences of other authors' crates.
pub const NOTICES: &str = "THIRD-PARTY";

/// Header of the file SIZES.
pub const SIZES: &str = "\
Bytes that the library adds to a program: a client that opens a device, adds samples, passes
bytes, trains and predicts, compiled with -Os and linked with --gc-sections. A client for central
trust only and a client that answers questions are the same program. A client that sleeps also
holds an update. A client that only infers opens a device, passes bytes and predicts. Their
libraries, libsmolfed_central.a, libsmolfed_questions.a, libsmolfed_sleep.a and
libsmolfed_delivery.a, are in the archives for single targets. The memory of the device is extra:
sf_memory_bytes, sf_infer_bytes. The text contains code and constants.

";

/// Packs the archive of a target.
///
/// # Errors
/// A file cannot be copied, or `tar` fails.
pub fn of_target(library: &Library, notices: &str) -> Result<PathBuf, Box<dyn Error>> {
    let target = &library.target;
    let content = Content::new(&format!("smolfed-c-{}-{target}", version()))?;
    for (from, to) in FILES {
        content.copy(&root().join(from), to)?;
    }
    content.copy(&library.path, "lib/libsmolfed.a")?;
    for (variant, path) in &library.variants {
        content.copy(path, &format!("lib/{}", variant.file))?;
    }
    content.write("SIZES", &format!("{SIZES}{}", library.sizes))?;
    content.write(NOTICES, notices)?;
    for file in [
        "CMakeLists.txt",
        "examples/minimal/CMakeLists.txt",
        "lib/cmake/smolfed/smolfed-config.cmake",
        "lib/cmake/smolfed/smolfed-config-version.cmake",
        "smolfed.mk",
    ] {
        let text = fs::read_to_string(content.path(file))?;
        content.write(file, &filled(&text, target))?;
    }
    content.pack()
}

/// Returns the version of the workspace.
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Inserts the version and the names of the target into a file.
fn filled(text: &str, target: &str) -> String {
    let machine = Machine::of(target);
    let machine = machine.as_ref();
    let compiler = machine.map_or("cc", |machine| machine.compiler);
    let flags = machine.map_or(&[][..], |machine| machine.flags);
    let libraries = machine.map_or(&[][..], |machine| machine.libraries);
    let linked: Vec<_> = libraries.iter().map(|name| format!("-l{name}")).collect();
    let (minor, _) = version().rsplit_once('.').unwrap_or((version(), ""));
    text.replace("@VERSION@", version())
        .replace("@MINOR@", minor)
        .replace("@TARGET@", target)
        .replace("@COMPILER@", compiler)
        .replace("@MACHINE@", &flags.join(" "))
        .replace("@LIBRARIES@", &libraries.join(";"))
        .replace("@FLAGS@", &linked.join(" "))
}

/// A folder that becomes an archive with the same name.
pub struct Content {
    folder: PathBuf,
    name: String,
}

impl Content {
    /// Creates an empty folder.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn new(name: &str) -> Result<Self, Box<dyn Error>> {
        let folder = target_dir().join("c-library");
        let content = folder.join(name);
        if content.exists() {
            fs::remove_dir_all(&content)?;
        }
        fs::create_dir_all(&content)?;
        let name = name.to_owned();
        Ok(Self { folder, name })
    }

    /// Returns the path of a file.
    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.join(&self.name).join(file)
    }

    /// Copies a file or a folder.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub fn copy(&self, from: &Path, to: &str) -> Result<(), Box<dyn Error>> {
        if from.is_dir() {
            fs::create_dir_all(self.path(to))?;
            for entry in fs::read_dir(from)? {
                let entry = entry?;
                let name = entry.file_name();
                self.copy(&entry.path(), &format!("{to}/{}", name.to_string_lossy()))?;
            }
            return Ok(());
        }
        let to = self.path(to);
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::copy(from, &to).map_err(|error| format!("{}: {error}", from.display()))?;
        Ok(())
    }

    /// Writes a text.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, to: &str, text: &str) -> Result<(), Box<dyn Error>> {
        Ok(fs::write(self.path(to), text)?)
    }

    /// Packs the folder.
    ///
    /// # Errors
    /// `tar` fails.
    pub fn pack(&self) -> Result<PathBuf, Box<dyn Error>> {
        let archive = self.folder.join(format!("{}.tar.gz", self.name));
        let mut tar = Command::new("tar");
        tar.arg("-C").arg(&self.folder).arg("-czf").arg(&archive);
        tar.arg(&self.name);
        match tar.status()?.success() {
            true => Ok(archive),
            false => Err(format!("failed: {tar:?}").into()),
        }
    }
}
