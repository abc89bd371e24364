//! Every example of the documentation works as it stands.

use serde_json::Value as Json;

use crate::support::{Scene, within};

const PAGE: &str = include_str!("../../../../docs/api.md");

/// A `curl` command as it is written there: method, URL, headers, body.
fn read(line: &str) -> (reqwest::Method, String, Vec<(String, String)>, Option<String>) {
    // Quotes are single, and words have none of their own.
    let words: Vec<String> = line
        .split('\'')
        .enumerate()
        .flat_map(|(n, part)| match n % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect::<Vec<_>>(),
            _ => vec![part.to_owned()],
        })
        .collect();
    let (mut method, mut url, mut headers, mut body) = (reqwest::Method::GET, String::new(), vec![], None);
    let mut words = words.into_iter().skip(1);
    while let Some(word) = words.next() {
        let mut next = || words.next().expect("an option has a value");
        match word.as_str() {
            "-N" | "-s" => {}
            "-X" => method = next().parse().expect("a method"),
            "-d" => body = Some(next()),
            "-H" => {
                let header = next();
                let (name, value) = header.split_once(": ").expect("a header");
                headers.push((name.to_owned(), value.to_owned()));
            }
            _ => url = word,
        }
    }
    (method, url, headers, body)
}

#[tokio::test]
async fn every_example_works_as_it_stands() {
    let scene = Scene::start().await;
    scene.polled(2).await;
    scene.change(2).await;
    let record = scene.get("/v1/records/s").await.1["items"][0]["fingerprint"].to_string();
    let examples: Vec<&str> = PAGE.lines().filter(|line| line.starts_with("curl ")).collect();
    assert!(examples.len() >= 10, "only {} examples", examples.len());
    for example in examples {
        let (method, url, headers, body) = read(example);
        let path = url.strip_prefix("http://127.0.0.1:8484").unwrap_or_else(|| panic!("{example}"));
        let path = path.replace("RECORD", record.trim_matches('"'));
        let mut request = scene.http.request(method, scene.url(&path));
        for (name, value) in headers {
            // Nobody has this token, and on loopback nobody needs one.
            if name != "authorization" {
                request = request.header(name, value);
            }
        }
        if let Some(body) = body {
            assert!(serde_json::from_str::<Json>(&body).is_ok(), "{example}");
            request = request.body(body);
        }
        let response = within(request.send()).await.expect("an answer");
        assert!(response.status().is_success(), "{example}: {}", response.status());
    }
    scene.stop().await;
}
