//! gateway-plugin/1, for plugins in Rust: the functions that a module imports from the gateway, and how to read its JSON.
//! Needs no crate beside `std`.
//!
//! The gateway calls `evaluate` once for each action. The input is `{"settings": …, "action": …}`, compact JSON in UTF-8;
//! the output is a verdict, as contract/verdict.schema.json says. `evaluate` returns 0; anything else blocks the action, as
//! does a panic. A module may export `validate_settings` too: called once, at load, with `{"settings": …}`, it answers
//! `{"valid": true}`, or `{"valid": false, "message": "…"}`, which refuses the load. Memory and globals are put back after
//! each call: nothing of one action is seen by the next.
#![allow(dead_code)]

#[link(wasm_import_module = "extism:host/env")]
extern "C" {
    fn input_length() -> u64;
    fn input_load_u8(offset: u64) -> u32;
    fn input_load_u64(offset: u64) -> u64;
    fn alloc(length: u64) -> u64;
    fn store_u8(offset: u64, value: u32);
    fn store_u64(offset: u64, value: u64);
    fn output_set(offset: u64, length: u64);
}

/// Returns the input of this call.
pub fn read_input() -> String {
    let length = unsafe { input_length() };
    let mut bytes = Vec::with_capacity(length as usize);
    let mut at = 0;
    while at + 8 <= length {
        bytes.extend_from_slice(&unsafe { input_load_u64(at) }.to_le_bytes());
        at += 8;
    }
    while at < length {
        bytes.push(unsafe { input_load_u8(at) } as u8);
        at += 1;
    }
    String::from_utf8(bytes).expect("input in UTF-8")
}

/// Answers the call, with at most 262,144 bytes.
pub fn write_output(json: &str) {
    let length = json.len() as u64;
    let block = unsafe { alloc(length) };
    let (words, rest) = json.as_bytes().split_at(json.len() / 8 * 8);
    for (index, word) in words.chunks_exact(8).enumerate() {
        let word = u64::from_le_bytes(word.try_into().expect("8 bytes"));
        unsafe { store_u64(block + 8 * index as u64, word) };
    }
    for (index, byte) in rest.iter().enumerate() {
        unsafe { store_u8(block + (words.len() + index) as u64, u32::from(*byte)) };
    }
    unsafe { output_set(block, length) };
}

/// A value in JSON as the gateway writes it: compact, each text in the one spelling of JSON.stringify, so that equal texts
/// are equal bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Json<'a>(pub &'a str);

impl<'a> Json<'a> {
    /// Returns the value of an object's member, whose name is written as in JSON. Panics, which blocks, where there is none.
    pub fn member(self, name: &str) -> Json<'a> {
        let mut rest = self.0.strip_prefix('{').expect("an object");
        loop {
            let (key, behind) = rest.split_at(text_end(rest));
            let behind = behind.strip_prefix(':').expect("a member");
            let (value, behind) = behind.split_at(value_end(behind));
            if key.get(1..key.len() - 1) == Some(name) {
                return Json(value);
            }
            rest = behind.strip_prefix(',').expect(name);
        }
    }

    /// Returns each text in this value, the names of members among them, as it is spelled between its quotation marks.
    pub fn texts(self) -> impl Iterator<Item = &'a str> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (_, from) = rest.split_at(rest.find('"')?);
            let (text, behind) = from.split_at(text_end(from));
            rest = behind;
            text.get(1..text.len() - 1)
        })
    }

    /// Returns what is spelled between the quotation marks of a text. Panics, which blocks, where this is none.
    pub fn text(self) -> &'a str {
        assert!(self.0.starts_with('"'), "a text");
        &self.0[1..self.0.len() - 1]
    }
}

/// Returns whether one spelled text holds another. An escape, such as `\n`, is one step: its letter begins nothing.
pub fn holds(text: &str, part: &str) -> bool {
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        if !escaped && text[at..].starts_with(part) {
            return true;
        }
        escaped = !escaped && letter == '\\';
    }
    part.is_empty()
}

/// The place behind a text that begins with a quotation mark.
fn text_end(json: &str) -> usize {
    let mut escaped = true;
    for (at, byte) in json.bytes().enumerate() {
        match byte {
            b'"' if !escaped => return at + 1,
            b'\\' if !escaped => escaped = true,
            _ => escaped = false,
        }
    }
    panic!("a text without an end")
}

/// The place behind a value: where the next comma is, or what it is in ends.
fn value_end(json: &str) -> usize {
    let bytes = json.as_bytes();
    let (mut at, mut depth) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b',' | b'}' | b']' if depth == 0 => break,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => (),
        }
        at += if bytes[at] == b'"' { text_end(&json[at..]) } else { 1 };
    }
    at
}
