//! Files that appear whole or not at all. Knows bytes, not what they mean.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Writes `contents` to `file` under a temporary name in the same folder, then fsync, rename, fsync of the folder.
///
/// # Errors
/// When the operating system refuses; `file` is then as it was, and nothing is left under the temporary name.
pub fn write_whole(file: &Path, contents: &[u8]) -> io::Result<()> {
    let folder = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut temporary = temporary(folder)?;
    temporary.write_all(contents)?;
    temporary.as_file().sync_all()?;
    temporary.persist(file)?;
    File::open(folder)?.sync_all()
}

/// A named temporary file with the permissions of an ordinary new file, not those of a secret.
fn temporary(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    // Named `.tmp...`: whoever finds such a file after a crash may delete it.
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(<std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666));
    builder.tempfile_in(folder)
}
