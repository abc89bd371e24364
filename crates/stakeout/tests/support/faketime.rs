//! A process that sees another time of day.

/// The variables under which a process sees a time that is `ahead` of ours (`+2s`, `-3600s`); `None` where the library
/// that does it is missing.
pub(crate) fn faketime(ahead: &str) -> Option<[(&'static str, String); 3]> {
    let found = std::fs::read_dir("/usr/lib")
        .ok()?
        .flatten()
        .map(|entry| entry.path().join("faketime/libfaketimeMT.so.1"));
    let found = found.chain(["/usr/lib/faketime/libfaketimeMT.so.1".into()]).find(|path| path.exists());
    if found.is_none() {
        println!("skipped: libfaketime is not installed (Debian's package faketime)");
        assert!(std::env::var("CI").as_deref() != Ok("true"), "with CI=true nothing may be skipped");
    }
    Some([
        ("LD_PRELOAD", found?.display().to_string()),
        ("FAKETIME", ahead.to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ])
}
