import type { ActionEffect } from "../../action/action-fact.ts";

/** An awk program reads where it has no call of a program, no redirect, and no other file of program text. */
export function awkEffect(texts: readonly string[]): ActionEffect {
  let at = 0;
  for (; at < texts.length && texts[at]?.startsWith("-"); at += 1) {
    const text = texts[at] ?? "";
    if (text === "--") {
      at += 1;
      break;
    }
    if (text === "-F" || text === "-v") at += 1;
    else if (!text.startsWith("-F") && !text.startsWith("-v")) return "execute";
  }
  const program = texts[at];
  return program === undefined ? "unknown" : programEffect(program);
}

/** Calls of programs and files, and what prints the environment. */
const calls = /system|getline|close|fflush|ENVIRON|@|\\\n/;

function programEffect(program: string): ActionEffect {
  if (calls.test(program)) return "execute";
  const bare = withoutTexts(program);
  return bare === null || hasRedirect(bare) ? "execute" : "read";
}

const text = /"(?:[^"\\\n]|\\.)*"/y;
/** A slash in brackets ends the expression for some awks. */
const expression = /\/(?:[^/\\\n[\]]|\\.|\[[^\]/\\\n]+\])*\//y;
const comment = /#[^\n]*/y;
const word = /[A-Za-z_]\w*|\d[\w.]*/y;
/** Words after which a slash begins an expression, or may. */
const keywords = ["print", "printf", "return", "exit", "in", "else", "do", "delete", "getline", "case", "length"];

/** Replaces texts and expressions and drops comments; null where a slash or a quote can be read in two ways. */
function withoutTexts(program: string): string | null {
  let bare = "";
  for (let at = 0; at < program.length; ) {
    const found = takePart(program, at, bare);
    if (found === null) return null;
    at += found.length;
    if (found.startsWith("#")) continue;
    bare += /^(?:"|\/.)/s.test(found) ? "0" : found;
  }
  return bare;
}

/** Returns the text, expression, comment, word or sign that begins here. */
function takePart(program: string, at: number, before: string): string | null {
  const char = program[at] ?? "";
  if (char === '"') return take(text, program, at);
  if (char === "/") return takeSlash(program, at, before);
  return take(char === "#" ? comment : word, program, at) ?? char;
}

/** Returns the expression or the sign of division that begins here; null where it may be either. */
function takeSlash(program: string, at: number, before: string): string | null {
  const shown = before.trimEnd();
  const last = shown.at(-1) ?? "";
  if (/\n[ \t]*$/.test(before.slice(-80)) || /^[(,{};!~&|?:=]?$/.test(last)) return take(expression, program, at);
  return /[\w\]]/.test(last) && !keywords.some((name) => shown.endsWith(name)) ? "/" : null;
}

function take(pattern: RegExp, source: string, at: number): string | null {
  pattern.lastIndex = at;
  return pattern.exec(source)?.[0] ?? null;
}

/** `>` compares in a pattern and in parentheses; in a bare statement of an action it may redirect. `|` always runs a program. */
function hasRedirect(bare: string): boolean {
  const signs = bare.replaceAll("||", "").replaceAll(">=", "");
  if (signs.includes("|") || signs.includes(">>")) return true;
  let braces = 0;
  let parentheses = 0;
  for (const char of signs) {
    if (char === "{") braces += 1;
    else if (char === "}") braces -= 1;
    else if (char === "(") parentheses += 1;
    else if (char === ")") parentheses -= 1;
    else if (char === ">" && braces > 0 && parentheses === 0) return true;
  }
  return braces !== 0 || parentheses !== 0;
}
