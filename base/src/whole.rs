//! Files that appear whole or not at all. Knows bytes, not what they mean.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Writes `contents` to `file` under a temporary name in the same folder, then fsync, rename, fsync of the folder.
///
/// # Errors
/// When the operating system refuses; `file` is then as it was, and nothing is left under the temporary name.
pub fn write_whole(file: &Path, contents: &[u8]) -> io::Result<()> {
    let mut temporary = temporary(folder(file))?;
    temporary.write_all(contents)?;
    persist(temporary, file)
}

/// The folder that a file lies in.
#[must_use]
pub fn folder(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A named temporary file with the permissions of an ordinary new file, not those of a secret.
///
/// # Errors
/// When the folder is not writable.
pub fn temporary(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    // Named `.tmp...`: whoever finds such a file after a crash may delete it.
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(<std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666));
    builder.tempfile_in(folder)
}

/// Gives a temporary file, now complete, its name: fsync, rename, fsync of the folder.
///
/// # Errors
/// When the operating system refuses.
pub fn persist(temporary: tempfile::NamedTempFile, file: &Path) -> io::Result<()> {
    temporary.as_file().sync_all()?;
    temporary.persist(file)?;
    File::open(folder(file))?.sync_all()
}
