//! Files and folders that appear whole or not at all.
//!
//! What has its final name survives a crash of the machine: the contents are synced before the rename, the folder that holds the name after it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// Writes `contents` to `file` under a temporary name in the same folder, then fsync, rename, fsync of the folder.
///
/// # Errors
/// When the operating system refuses; `file` is then as it was, and nothing is left under the temporary name.
pub fn write_whole(file: &Path, contents: &[u8]) -> io::Result<()> {
    let mut temporary = temporary(folder(file))?;
    temporary.write_all(contents)?;
    persist(temporary, file)
}

/// As [`write_whole`], after making the folder that `file` lies in, and those around it.
///
/// # Errors
/// As [`write_whole`].
pub fn write_with_folder(file: &Path, contents: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder(file))?;
    write_whole(file, contents)
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
    builder.permissions(<fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666));
    builder.tempfile_in(folder)
}

/// A folder in the making, with the permissions of an ordinary new one; it is removed with all that is in it unless it is finished.
#[derive(Debug)]
pub struct NewFolder {
    made: tempfile::TempDir,
    place: PathBuf,
}

impl NewFolder {
    /// Begins one that will be called `place`, beside it.
    ///
    /// # Errors
    /// When the folder around it is not writable.
    pub fn begin(place: &Path) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        builder.permissions(<fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o777));
        Ok(Self { made: builder.tempdir_in(folder(place))?, place: place.to_owned() })
    }

    /// Where its files are written.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.made.path()
    }

    /// Gives it its name, now that it is complete; an empty folder of that name gives way.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn finish(self) -> io::Result<()> {
        let Self { made, place } = self;
        sync_folder(made.path())?;
        fs::rename(made.path(), &place)?;
        let _now_at_place = made.keep();
        sync_folder(folder(&place))
    }
}

/// Gives a temporary file, now complete, its name: fsync, rename, fsync of the folder.
///
/// # Errors
/// When the operating system refuses.
pub fn persist(temporary: tempfile::NamedTempFile, file: &Path) -> io::Result<()> {
    temporary.as_file().sync_all()?;
    temporary.persist(file)?;
    sync_folder(folder(file))
}

/// Brings the names in `folder` safely to disk.
///
/// # Errors
/// When the operating system refuses.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Puts the finished folder `new` where `place` is or will be, and syncs the folder around it. What lay at `place` lies at `new` afterwards.
///
/// The exchange is one step of the kernel. Where the file system lacks it, the old folder is moved aside first (`new` with `.old` behind its
/// name): a crash between the two steps leaves no folder at `place`, which the caller must look for.
///
/// # Errors
/// The path that the operating system refuses, and its word.
pub fn exchange(new: &Path, place: &Path) -> Result<(), (PathBuf, io::Error)> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |cause| (path, cause)
    };
    if !place.exists() {
        fs::rename(new, place).map_err(at(place))?;
    } else if let Err(refused) = renameat_with(CWD, new, CWD, place, RenameFlags::EXCHANGE) {
        // What a kernel or a file system without it says; anything else would befall the renames, too.
        return match refused {
            Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP => exchange_by_renames(new, place, &mut |_| ()),
            refused => Err((place.to_owned(), refused.into())),
        };
    }
    sync_folder(folder(place)).map_err(at(folder(place)))
}

/// A moment within [`exchange_by_renames`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// The old folder is aside, and nothing at its place.
    Aside,
    /// The new folder is in place, the old one still aside.
    Placed,
}

/// What [`exchange`] does where the file system has no exchange in one step: three renames. `at` is told of the moments between them.
///
/// # Errors
/// As [`exchange`].
pub fn exchange_by_renames(
    new: &Path,
    place: &Path,
    at: &mut dyn FnMut(Between),
) -> Result<(), (PathBuf, io::Error)> {
    let refused = |path: &Path| {
        let path = path.to_owned();
        move |cause| (path, cause)
    };
    let aside = aside(new);
    match fs::remove_dir_all(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err((aside, error)),
        _ => {}
    }
    fs::rename(place, &aside).map_err(refused(place))?;
    at(Between::Aside);
    if let Err(cause) = fs::rename(new, place) {
        // Back to where it was; the first error is the one to report.
        let _ = fs::rename(&aside, place);
        return Err((place.to_owned(), cause));
    }
    at(Between::Placed);
    fs::rename(&aside, new).map_err(refused(&aside))?;
    sync_folder(folder(place)).map_err(refused(folder(place)))
}

/// Where [`exchange`] leaves the old folder if a crash comes between its steps.
#[must_use]
pub fn aside(new: &Path) -> PathBuf {
    let mut aside = new.as_os_str().to_owned();
    aside.push(".old");
    PathBuf::from(aside)
}
