//! A process that sees another time of day.

/// The variables under which a process sees a time that is `ahead` of ours (`+2s`, `-3600s`); `None` where the library
/// that does it is missing.
pub(crate) fn faketime(ahead: &str) -> Option<[(&'static str, String); 3]> {
    Some([
        ("LD_PRELOAD", library()?),
        ("FAKETIME", ahead.to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ])
}

/// The same, with a time that is read from a file whenever somebody asks.
#[allow(dead_code, reason = "not every test that includes this file sets clocks")]
pub(crate) fn faketime_of(file: &std::path::Path) -> Option<[(&'static str, String); 4]> {
    Some([
        ("LD_PRELOAD", library()?),
        ("FAKETIME_TIMESTAMP_FILE", file.display().to_string()),
        ("FAKETIME_NO_CACHE", "1".to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ])
}

fn library() -> Option<String> {
    let found = std::fs::read_dir("/usr/lib")
        .ok()?
        .flatten()
        .map(|entry| entry.path().join("faketime/libfaketimeMT.so.1"));
    let found = found.chain(["/usr/lib/faketime/libfaketimeMT.so.1".into()]).find(|path| path.exists());
    if found.is_none() {
        let words = b"skipped: libfaketime is not installed (Debian's package faketime)\n";
        std::io::Write::write_all(&mut std::io::stdout(), words).expect("written");
        assert!(std::env::var("CI").as_deref() != Ok("true"), "with CI=true nothing may be skipped");
    }
    Some(found?.display().to_string())
}
