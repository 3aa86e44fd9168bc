//! What a process inherits by accident, closed.

/// Closes every descriptor but the standard three (R26).
///
/// Ours are all close-on-exec; those that the shell or an editor left open to the hypervisor are not, and a
/// shim that lives for hours would keep their locks and pipes, and the child would find them.
///
/// Only at the very beginning of a process, before it opens anything or starts a thread.
#[expect(unsafe_code, reason = "closing a descriptor that no value of ours owns")]
pub(super) fn close_inherited() {
    let Ok(entries) = std::fs::read_dir("/dev/fd") else {
        return;
    };
    let open: Vec<i32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        // The folder that was read is among them, and closed by now.
        if std::fs::symlink_metadata(format!("/dev/fd/{descriptor}")).is_err() {
            continue;
        }
        // SAFETY: the caller runs alone and has opened nothing, so nothing in this process owns it.
        unsafe { rustix::io::close(descriptor) };
    }
}
