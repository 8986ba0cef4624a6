//! Compares the messages with proto/vectors.json.

mod json;
mod words;

use json::Json;
use words::{decode, Fields, Words};

/// The words of the fields, as the runners have them.
fn flat(tree: &Json, at: &str, f: &mut Fields) {
    match tree {
        Json::Map(members) => {
            for (key, value) in members {
                flat(value, &format!("{at}.{key}"), f);
            }
        }
        Json::List(items) => {
            for (i, value) in items.iter().enumerate() {
                flat(value, &format!("{at}.{i}"), f);
            }
        }
        Json::Text(text) => f.add(&at[1..], text),
        Json::Plain(text) => f.add(&at[1..], text),
    }
}

fn vectors() -> Vec<Json> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto/vectors.json");
    match json::parse(&std::fs::read_to_string(path).unwrap()) {
        Json::List(vectors) => vectors,
        _ => panic!("not a list"),
    }
}

fn bytes(vector: &Json) -> Vec<u8> {
    match vector.get("packets") {
        Some(Json::List(packets)) => packets
            .iter()
            .flat_map(|packet| packet.text().to_vec())
            .collect(),
        _ => panic!("no packets"),
    }
}

#[test]
fn vectors_agree() {
    let (mut requests, mut messages) = (0, 0);
    for vector in vectors() {
        let name = String::from_utf8_lossy(vector.get("name").unwrap().text())
            .into_owned();
        let data = bytes(&vector);
        let mut wanted = Fields::default();
        if let Some(request) = vector.get("request") {
            flat(request, "", &mut wanted);
            let words = Words::parse(wanted.0.iter().map(String::as_str));
            assert_eq!(words.encode(), Ok(data), "{name}");
            requests += 1;
        } else if vector.get("refused").is_none() {
            let mut kind = "fatal";
            for one in ["hello", "answer"] {
                if let Some(fields) = vector.get(one) {
                    flat(fields, "", &mut wanted);
                    kind = one;
                }
            }
            if kind == "hello" && !wanted.0.contains(&"version=2".to_string()) {
                kind = "fatal"; // the client hangs up
                wanted = Fields::default();
            }
            let (got, mut fields) = decode(&data);
            fields.0.sort();
            wanted.0.sort();
            assert_eq!((got, fields.0), (kind, wanted.0), "{name}");
            messages += 1;
        }
    }
    assert!(requests > 10 && messages > 10);
}

/// Whatever a server sends, decoding ends without a panic.
#[test]
fn hostile_messages_do_not_panic() {
    let mut seed = 1u64;
    let mut random = |most: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
        (seed >> 33) as usize % most
    };
    for vector in vectors() {
        if vector.get("request").is_some() {
            continue;
        }
        let data = bytes(&vector);
        for end in 0..data.len().min(400) {
            decode(&data[..end]);
        }
        for _ in 0..300 {
            let mut broken = data.clone();
            for _ in 0..=random(4) {
                let at = random(broken.len());
                broken[at] = b"\0\x01 =:0azf-9\xff"[random(12)];
            }
            decode(&broken);
            // The same in whole packets, so that the framing stays right.
            let mut packets: Vec<Vec<u8>> = Vec::new();
            let mut incoming = refd::wire::Incoming::default();
            incoming.feed(&data);
            if let Ok(Some(whole)) = incoming.message() {
                packets.extend(whole);
            }
            if packets.is_empty() {
                continue;
            }
            let one = random(packets.len());
            let at = random(packets[one].len());
            packets[one][at] = b"\0\x01 =:0azf-9\xff"[random(12)];
            if random(2) == 0 {
                packets[one].truncate(at);
            }
            let _ = refd::wire::decode_hello(&packets);
            let _ = refd::wire::decode_answer(&packets);
        }
    }
}
