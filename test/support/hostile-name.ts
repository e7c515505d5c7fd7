const raw: Readonly<Record<string, string>> = {
  "a header": "a\r\nSet-Cookie: a=1\r\n\r\nHTTP/1.1 200 OK",
  "an event of a stream": "a\n\nevent: forged\ndata: {}\n\nid: 7\nretry: 1",
  "a line of a log": 'a\n{"level":"error","msg":"forged"}',
  "a series of metrics": 'a"} 1\nforged_total{x="',
  "codes of a terminal": "\u001b[2J\u001b[31mred\u001b]0;title\u0007\u0008\u007f",
  "codes of a terminal, in one": "\u009b31m\u0085\u0090\u009c",
  "an end of a script": "</script><script>window.hit=1</script>",
  "an element": '"><img/src=x/onerror="window.hit=1"><svg/onload=window.hit=1>',
  "an attribute": "'/onmouseover=window.hit=1/x='",
  "a comment and an entity": "--><!--&lt;b&gt;&#x202e;",
  "a link in Markdown": "[a](javascript:window.hit=1)|**b**`c`<d>\\",
  "a heading in Markdown": "# a\n## b\n\n---\n| c |",
  "a formula": "=cmd|'/C_calc'!A0",
  "a formula by plus": '+HYPERLINK("http://evil.example")',
  "a formula by minus": "-2+3+cmd|'/C_calc'!A0",
  "a formula by at": "@SUM(1+1)*cmd|'/C_calc'!A0",
  "a formula behind a tab": "\t=1+1",
  "text turned around": "\u202egpj.exe\u2066x\u2069",
  "text that is not seen": "ad\u200bmin\ufeff\u00ad\u{e0041}\u2800\ufe0f",
  "ends of lines": "a\u2028b\u2029c",
  "letters of another script": "p\u0430yp\u0430l",
};

/** A text that means something to whoever shows it, and how it is found again. */
export interface HostileName {
  readonly what: string;
  readonly text: string;
  /** In plain letters; the text ends in it. */
  readonly mark: string;
}

/** Texts that are inert nowhere by themselves: for logs, streams, pages, tables, terminals and readers. */
export const hostileNames: readonly HostileName[] = Object.entries(raw).map(([what, text], at) => {
  const mark = `mark${at}x`;
  return { what, text: `${text}${mark}`, mark };
});

/** What a reader does not see, or takes for something else, but for the ends of lines. */
export const unseen: RegExp =
  /(?!\n)[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|[^\P{Zs} ]/u;
