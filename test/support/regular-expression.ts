/** A regular expression as a source file writes it. */
export interface WrittenPattern {
  readonly line: number;
  readonly pattern: RegExp;
}

/** What a slash may follow where it begins a regular expression; behind anything else it divides. */
const beforePattern = /(?:^|[(,=:[!&|?{};+>]|\b(?:return|typeof|case) ?)$/;
const literal = /\/((?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+)\/([dgimsuvy]*)/y;
const skipped = /\/\/.*|\/\*[\s\S]*?\*\/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/y;

/** All regular expressions that a source file holds as literals, those within templates' `${}` too. */
export function patternsIn(source: string): readonly WrittenPattern[] {
  const found: WrittenPattern[] = [];
  /** For each template that is open, how many braces are open in its `${}`. */
  const templates: number[] = [];
  let code = ""; // the end of what was read, without blanks
  let inText = false;
  for (let at = 0; at < source.length; ) {
    const rest = source.slice(at, at + 2);
    if (inText) {
      if (rest.startsWith("\\")) at += 2;
      else if (rest === "${") {
        templates.push(0);
        inText = false;
        code = "{";
        at += 2;
      } else {
        inText = !rest.startsWith("`");
        code = "`";
        at += 1;
      }
      continue;
    }
    const over = matchAt(skipped, source, at);
    if (over !== undefined) {
      if (!over[0].startsWith("/")) code = '"';
      at += over[0].length;
      continue;
    }
    const written = rest.startsWith("/") && beforePattern.test(code) ? matchAt(literal, source, at) : undefined;
    if (written !== undefined) {
      const [text, body = "", flags = ""] = written;
      found.push({ line: source.slice(0, at).split("\n").length, pattern: new RegExp(body, flags) });
      code = "/";
      at += text.length;
      continue;
    }
    const [sign = ""] = rest;
    const open = templates.at(-1);
    if (sign === "`") inText = true;
    else if (sign === "{" && open !== undefined) templates.push((templates.pop() ?? 0) + 1);
    else if (sign === "}" && open === 0) {
      templates.pop();
      inText = true;
    } else if (sign === "}" && open !== undefined) templates.push((templates.pop() ?? 0) - 1);
    if (/\S/.test(sign)) code = (code + sign).slice(-8);
    else if (/\w$/.test(code)) code += " ";
    at += 1;
  }
  return found;
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text) ?? undefined;
}
