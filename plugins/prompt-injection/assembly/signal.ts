/** Signals of instructions in a text that should contain none; each is an index in the tables. */
export namespace Signal {
  export const ignoring: i32 = 0;
  export const persona: i32 = 1;
  export const unrestricted: i32 = 2;
  export const addressed: i32 = 3;
  export const secrecy: i32 = 4;
  export const reveal: i32 = 5;
  export const exfiltration: i32 = 6;
  export const toolUse: i32 = 7;
  export const newOrder: i32 = 8;
  export const urgent: i32 = 9;
  export const ending: i32 = 10;
  export const roleMarker: i32 = 11;
  export const hiddenText: i32 = 12;
  export const unseenPlace: i32 = 13;
  export const image: i32 = 14;
  export const encoded: i32 = 15;
  export const count: i32 = 16;
}

const rules: StaticArray<string> = [
  "override",
  "persona",
  "unrestricted",
  "addressed",
  "secrecy",
  "reveal",
  "exfiltration",
  "tool-use",
  "new-orders",
  "urgency",
  "false-ending",
  "role-marker",
  "hidden-text",
  "unseen-place",
  "image-link",
  "encoded",
];

const messages: StaticArray<string> = [
  "tells the reader to ignore its instructions",
  "tells the reader to be someone else",
  "speaks of a mode without restrictions",
  "speaks to an assistant",
  "asks to keep something from the user",
  "asks for the reader's own instructions",
  "asks to send secrets or a conversation away",
  "asks for a tool to be called",
  "announces other instructions",
  "claims authority or urgency",
  "pretends that the data ends here",
  "holds markers that separate roles in a prompt",
  "holds characters that nobody sees",
  "speaks where nobody looks: in a comment or in hidden markup",
  "holds a picture whose address takes data along",
  "holds such text in base64",
];

/** The rule of a signal, without the plugin's name. */
export function ruleOf(signal: i32): string {
  return rules[signal];
}

export function messageOf(signal: i32): string {
  return messages[signal];
}
