// INVARIANT: stored values name these words by their place. A list is only ever added to, at its end; what a value of an
// earlier version holds is read by them for good.

/** The words inside quotes have the codes below it. */
export const quotedCodeLimit = 0x78;

/** Frequent names of members. */
export const stringWords: readonly string[] = [
  ..."action arguments_digest capability fingerprint id output_digest phase protocol target task".split(" "),
  ..."tool tool_definition approval reviewer state chain client address name version".split(" "),
  ..."config_digest effect evaluation by_default decision duration_us errors policies digest kind".split(" "),
  ..."redactions count rule signer verdict risk rules shadow would_have prev_hash".split(" "),
  ..."principal key_id role reason salt schema seq session index label".split(" "),
  ..."transport tenant ticket standing use time trace span_id trace_id writer".split(" "),
  ..."epoch detail event value commitment arguments output started_at last_at first_seq".split(" "),
  ..."last_seq records actions reviews last taints tools tool_count".split(" "),
];

/** Frequent values. */
export const valueWords: readonly string[] = [
  ..."read write delete input mcp http dispatched not_dispatched success error".split(" "),
  ..."unknown abstain allow review block evidence-record-v1 pack plugin kill-switch task-manifest".split(" "),
  ..."agent operator admin viewer outcome text content type 127.0.0.1 1".split(" "),
  "1.0.0",
  "",
];

/** Frequent structure between strings. */
export const structureWords: readonly string[] = [
  ..."{ : , } :{ }, }} :[ ] ], ]} :[{ },{ }] }], }]} :null, :null} :false, :true,".split(" "),
  ...":false} :true} :[], :[]} :[]}, [{ ]}, ]}} }}, [ }]}]} :[[ [[".split(" "),
];

/** First byte of a text that is base64, and of one that is lower-case hex: then come the bytes it stands for. */
export const base64Form = 0xf8;
export const hexForm = 0xf9;
/** First byte of a text that is kept piece by piece, as `encodePieces` does it. */
export const pieceForm = 0xfa;

/** The codes of a piece inside quotes, beside those of the words. */
export const literalCode = 0x7f;
export const hashCode = 0x7e;
export const digestCode = 0x7d;
export const idCode = 0x7c;
export const timeCode = 0x7b;
export const saltCode = 0x7a;
export const sessionCode = 0x79;
export const principalCode = 0x78;
/** Set on the code of a piece inside quotes: the structure after it is the usual one, and is left out. */
export const usualNext = 0x80;

/** The codes of a piece between quotes, beside those of the words: a number up to a comma, up to a brace, and other text. */
export const commaNumberCode = 0xfe;
export const braceNumberCode = 0xfd;
export const otherCode = 0xff;

export const sessionPrefix = "session-v1-";
export const principalPrefix = "principal-v1-";
export const digestPrefix = "sha256:";

/** Words inside quotes by their code: names, which `:` follows, and then values, which `,` follows. */
export const quotedWords: readonly string[] = [...stringWords, ...valueWords];
