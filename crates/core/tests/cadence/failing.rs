//! After failures: backoff, what the upstream asked for, and neither across a boundary.

use super::*;

#[test]
fn a_failing_target_waits_ever_longer_but_never_four_intervals() {
    let plan = Plan::Fixed(Fixed { every: Span::secs(10), eager: false, place: None });
    let wait =
        |failures| due(&next(&plan, &Facts::default(), &failed(t(), failures, None), t(), &SEAT)) - t();
    assert!(wait(1) <= Span::secs(10));
    assert!(wait(9) >= Span::secs(20) && wait(u32::MAX) <= Span::secs(40));
    let success = next(&plan, &Facts::default(), &good(t()), t(), &SEAT);
    assert!(due(&success) <= t() + Span::secs(10), "success resets");
}

#[test]
fn retry_after_wins_over_everything() {
    for plan in [seed(), Plan::Fixed(Fixed { every: Span::secs(1), eager: true, place: None })] {
        let last = failed(at("-21m"), 1, Some(at("-2m")));
        let found = next(&plan, &pending(t()), &last, at("-21m"), &SEAT);
        assert_eq!(due(&found), at("-2m"));
        let found = replan(&plan, &pending(t()), &last, at("-4m"), &SEAT);
        assert_eq!(due(&found), at("-2m"));
    }
    // One that is already past is no reason to be early.
    let last = failed(at("-21m"), 1, Some(at("-30m")));
    assert!(due(&next(&seed(), &pending(t()), &last, at("-21m"), &SEAT)) > at("-21m"));
}

#[test]
fn replanning_does_not_postpone_a_backoff() {
    let last = failed(at("-59m"), 2, None);
    let promised = due(&next(&seed(), &pending(t()), &last, at("-59m"), &SEAT));
    let found = replan(&seed(), &pending(t()), &last, at("-58m30s"), &SEAT);
    assert_eq!(due(&found), promised);
}
