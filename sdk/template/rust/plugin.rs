//! Blocks calls whose arguments hold the text that the settings name, in a value or in a member's name.
mod gateway_plugin;

use gateway_plugin::{holds, read_input, write_output, Json};

const ABSTAIN: &str = r#"{"decision":"abstain","findings":[]}"#;
const BLOCK: &str = r#"{"decision":"block","findings":[{"rule":"{{name}}.text","decision":"block","message":"the arguments hold a text that does not leave","severity":"high","risk":80,"pointer":"/arguments"}]}"#;

#[no_mangle]
pub extern "C" fn evaluate() -> i32 {
    let input = read_input();
    let (settings, action) = (Json(&input).member("settings"), Json(&input).member("action"));
    let part = settings.member("text").text();
    let is_input = action.member("phase").text() == "input";
    let blocked = is_input && action.member("arguments").texts().any(|text| holds(text, part));
    write_output(if blocked { BLOCK } else { ABSTAIN });
    0
}
