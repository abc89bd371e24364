//! The views that people read.

use stakeout_core::{Field, FieldType, Kind, Stream};
use stakeout_store::conformance::story::{KIND, Poll, STREAM, World, at};

use crate::support::{database, open, raw, texts};

#[tokio::test]
async fn anyone_can_open_the_database_and_read_it() {
    let url = database!();
    let world = World::with(open(&url).await, &["a"]).await;
    let slots = |fields: Vec<Field>| Kind {
        views: vec![],
        layout: Default::default(),
        family: "tables".into(),
        collection: "slots".into(),
        version: 1,
        fields,
        streams: vec![Stream { name: STREAM.into(), fields: vec!["price".into()] }],
        merges: false,
    };
    let price = Field::new("price", FieldType::Int);
    let kind = slots(vec![price.clone()]);
    assert_eq!(kind.full_name(), KIND);
    let claim = world.claim_one(0).await;
    world.done(Poll::of(&claim, 1).sees(&claim, &[("x", 7)])).await;
    world.store.set_setting("k", Some("v".into()), at(1)).await.expect("set");
    world.store.ensure_views(std::slice::from_ref(&kind)).await.expect("views");
    world.store.ensure_views(&[kind]).await.expect("again");
    let raw = raw(&url).await;
    let slots_now = "SELECT key, price::text, source, parent, first_seen FROM slots";
    assert_eq!(texts(&raw, slots_now).await, ["x · 7 · nyc · NULL · 2027-01-15T08:00:01.000Z"]);
    let prices = "SELECT slot, price::text, timestamp, source FROM price_history";
    assert_eq!(texts(&raw, prices).await, ["x · 7 · 2027-01-15T08:00:01.000Z · nyc"]);
    let targets =
        "SELECT source, target, interval_ms::text, priority::text, next_due_at, enabled::text, last_status,
        last_fetched_at FROM ingest_targets";
    let row = "nyc · a · 10000 · 50 · 2027-01-15T08:00:11.000Z · true · ok · 2027-01-15T08:00:01.000Z";
    assert_eq!(texts(&raw, targets).await, [row]);
    assert_eq!(texts(&raw, "SELECT key, value FROM server_settings").await, ["k · \"v\""]);

    raw.batch_execute("CREATE VIEW my_own AS SELECT 1 AS one").await.expect("a person's own");
    world
        .store
        .ensure_views(&[slots(vec![price, Field::new("party", FieldType::Int)])])
        .await
        .expect("changed");
    assert_eq!(texts(&raw, "SELECT party::text FROM slots").await, ["NULL"]);
    world.store.ensure_views(&[]).await.expect("none");
    let left =
        texts(&raw, "SELECT viewname::text FROM pg_views WHERE schemaname = 'public' ORDER BY 1").await;
    assert_eq!(
        left,
        ["client_kv", "ingest_targets", "my_own", "notifications", "server_settings", "user_alert_configs"]
    );
}
