//! Reads the JSON of proto/vectors.json. Each character of a string stands for
//! the byte with the same number.

use std::iter::Peekable;
use std::str::Chars;

pub enum Json {
    Map(Vec<(String, Json)>),
    List(Vec<Json>),
    Text(Vec<u8>),
    Plain(String), // numbers and true
}

impl Json {
    pub fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Map(members) => {
                members.iter().find(|m| m.0 == key).map(|m| &m.1)
            }
            _ => None,
        }
    }

    pub fn text(&self) -> &[u8] {
        match self {
            Json::Text(text) => text,
            _ => panic!("not a string"),
        }
    }
}

pub fn parse(text: &str) -> Json {
    value(&mut text.chars().peekable())
}

fn next(s: &mut Peekable<Chars>) -> char {
    while s.next_if(|c| c.is_whitespace()).is_some() {}
    *s.peek().unwrap()
}

fn value(s: &mut Peekable<Chars>) -> Json {
    match next(s) {
        '{' => {
            let mut members = Vec::new();
            items(s, '}', |s| {
                let key = String::from_utf8(string(s)).unwrap();
                assert_eq!(next(s), ':');
                s.next();
                members.push((key, value(s)));
            });
            Json::Map(members)
        }
        '[' => {
            let mut list = Vec::new();
            items(s, ']', |s| list.push(value(s)));
            Json::List(list)
        }
        '"' => Json::Text(string(s)),
        _ => {
            let mut plain = String::new();
            while let Some(c) = s.next_if(|c| c.is_ascii_alphanumeric()) {
                plain.push(c);
            }
            assert!(!plain.is_empty());
            Json::Plain(plain)
        }
    }
}

fn items(
    s: &mut Peekable<Chars>,
    close: char,
    mut item: impl FnMut(&mut Peekable<Chars>),
) {
    s.next();
    while next(s) != close {
        item(s);
        if next(s) == ',' {
            s.next();
        }
    }
    s.next();
}

fn string(s: &mut Peekable<Chars>) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert_eq!(s.next(), Some('"'));
    loop {
        let c = match s.next().unwrap() {
            '"' => return bytes,
            '\\' => match s.next().unwrap() {
                'n' => '\n',
                't' => '\t',
                'u' => {
                    let digits: String = s.by_ref().take(4).collect();
                    let number = u32::from_str_radix(&digits, 16).unwrap();
                    char::from_u32(number).unwrap()
                }
                c => c,
            },
            c => c,
        };
        bytes.push(u8::try_from(u32::from(c)).unwrap());
    }
}
