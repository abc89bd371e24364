//! The suite that every backend passes: what a [`Store`] promises, told as short stories.
//!
//! A backend lists all cases as tests of its own with [`conformance_tests!`](crate::conformance_tests):
//! ```ignore
//! stakeout_store::conformance_tests!(MyBackend::new());
//! ```

pub mod browse;
pub mod claims;
pub mod commits;
pub mod derived;
pub mod events;
pub mod notifications;
pub mod records;
#[cfg(unix)]
pub mod server;
pub mod story;
pub mod targets;
pub mod upkeep;

use std::sync::Arc;

use async_trait::async_trait;

use crate::Store;

/// How the suite gets at a store.
#[async_trait]
pub trait Backend: Send + Sync {
    /// Opens the backend's database; a second time only after the first store was dropped, and then with what the
    /// first one wrote.
    async fn open(&self) -> Arc<dyn Store>;

    /// Whether what was written is still there after a restart.
    fn survives_restart(&self) -> bool;

    /// How many rows were inserted, updated or deleted since the store was opened, if the backend can tell.
    fn rows_written(&self) -> Option<u64>;
}

/// Makes one `#[tokio::test]` per case of the suite; the argument makes a new, empty backend.
#[macro_export]
macro_rules! conformance_tests {
    ($backend:expr) => {
        $crate::conformance_tests! { @cases $backend;
            browse::records_are_listed_in_pages,
            browse::history_is_read_by_window_and_moment,
            browse::the_event_log_has_two_ends,
            browse::targets_are_listed_in_other_orders,
            browse::runs_of_a_source_outlive_their_targets,
            browse::published_values_are_listed,
            browse::tokens_are_kept_and_revoked,
            claims::only_due_and_enabled_targets_are_claimed_earliest_first,
            claims::priority_decides_between_equal_due_times,
            claims::the_limit_counts_over_all_sources,
            claims::a_claimed_target_is_taken_again_only_after_its_lease,
            claims::a_lease_that_ends_soon_is_not_taken_early,
            claims::released_claims_leave_no_trace,
            claims::renewing_extends_and_reports_what_was_lost,
            claims::renewing_shortens_nothing,
            claims::the_next_wake_is_the_earliest_claimable_moment,
            commits::a_stale_fence_is_refused_whole,
            commits::a_released_claim_cannot_commit,
            commits::a_repeated_commit_is_already_done,
            commits::an_older_poll_never_beats_a_newer_one,
            commits::a_poisoned_and_a_stale_poll_harm_no_other,
            commits::a_nul_harms_no_other,
            commits::an_unchanged_poll_writes_only_its_schedule,
            commits::a_moved_plan_version_wins_over_the_commit,
            commits::a_target_disabled_in_flight_is_not_due_again,
            commits::state_and_outcome_are_remembered,
            commits::notable_polls_runs_and_failures_are_logged,
            commits::who_was_polled_before_is_known,
            commits::a_batch_of_late_polls_is_logged_poll_by_poll,
            records::a_record_appears_changes_and_vanishes,
            records::a_shared_record_is_one_record,
            records::the_newest_observation_of_a_shared_record_wins,
            records::upstream_history_is_written_once,
            records::the_upstreams_row_replaces_the_observed_one,
            records::the_upstreams_row_replaces_the_observed_one_although_another_field_moved_since,
            records::a_gap_in_the_upstreams_history_is_marked,
            records::a_clock_set_back_does_not_freeze_records,
            records::a_record_that_changed_meanwhile_is_a_conflict,
            records::observed_history_needs_a_real_change,
            records::history_without_a_record_is_refused,
            events::an_event_exists_once,
            events::the_same_id_with_other_content_is_refused,
            events::a_known_dedupe_key_is_left_out,
            events::a_dedupe_key_counts_within_its_source,
            events::quiet_time_is_not_extended_by_what_it_suppresses,
            events::what_follows_from_an_event_comes_about_with_it,
            events::a_record_that_was_away_only_briefly_is_not_news,
            events::what_a_dedupe_key_leaves_out_claims_no_notice,
            events::only_the_first_of_a_group_is_news,
            events::a_hold_that_lapsed_does_not_count,
            events::siblings_that_went_are_found,
            events::readers_never_find_a_lower_number_later,
            events::filters_choose,
            notifications::what_alerts_told_is_read_once,
            notifications::a_user_sees_their_own_and_everybodys,
            notifications::a_mark_goes_with_its_event,
            notifications::outboxes_are_counted_by_sink,
            notifications::the_alerts_of_the_file_are_kept,
            targets::roots_are_reconciled_by_difference,
            targets::a_listing_creates_and_retires,
            targets::a_listing_never_retires_a_root,
            targets::retiring_lets_go_of_records_and_cascades,
            targets::a_target_that_returns_is_another_incarnation,
            targets::a_moved_start_time_replans_the_target,
            targets::disabled_stays_disabled_through_listings,
            targets::poll_now_makes_due_once,
            targets::replans_from_settings_move_the_due_time,
            targets::a_new_baseline_is_asked_for_even_in_flight,
            targets::lists_are_filtered_and_paged,
            derived::the_focus_moves_in_two_rows,
            derived::the_focus_is_claimed_first,
            derived::the_focus_makes_its_target,
            derived::a_derivation_on_old_ground_is_a_conflict,
            derived::derived_fields_do_not_make_a_record_newer,
            derived::the_whole_is_what_is_held,
            derived::derived_events_are_delivered,
            derived::what_is_told_under_one_key_is_told_once,
            upkeep::settings_are_kept,
            upkeep::values_of_no_source_are_kept,
            upkeep::deliveries_come_in_order_until_made_or_dead,
            upkeep::deliveries_are_found_by_their_events,
            upkeep::dead_deliveries_are_listed_retried_and_dropped,
            upkeep::undelivered_events_outlive_retention,
            upkeep::pruning_leaves_no_orphans,
            upkeep::the_last_history_row_of_a_held_record_stays,
            upkeep::pruning_goes_in_small_steps,
            upkeep::everything_survives_a_restart,
        }
    };
    (@cases $backend:expr; $($module:ident::$case:ident,)*) => {
        $(
            #[tokio::test]
            async fn $case() {
                let backend = $backend;
                $crate::conformance::$module::$case(&backend).await;
            }
        )*
    };
}
