import type { GitFact } from "../../action/action-fact.ts";
import type { ProgramRule } from "../effect-table.ts";
import { operandsOf } from "./program-effect.ts";
import type { ShellWord } from "./shell-word.ts";

export interface WordPlaces {
  readonly hosts: readonly string[];
  readonly paths: readonly string[];
}

const url = /[a-z][a-z0-9+.-]{0,20}:\/\/[^\s"'<>()]{1,300}/gi;
const innerPath = /(?:^|[\s"'`=:,;(<>@|{])((?:~[\w-]{0,32}|\.{1,2})?\/[\w.@%+,~*/-]{1,300})/g;
const hostName = /^(?:[^\s/@]{1,64}@)?(\[[0-9a-f:.%]+\]|[\w.-]+)(?::(\d{1,5}))?$/i;

/** Returns the hosts and paths among the words of a program, its name not among them. */
export function wordPlaces(rule: ProgramRule | undefined, words: readonly ShellWord[]): WordPlaces {
  const places = { hosts: new Set<string>(), paths: new Set<string>() };
  // What is only printed or compared leads nowhere.
  if (rule?.check === "printf" || (rule?.prints === true && rule.files !== true)) return { hosts: [], paths: [] };
  const texts = words.map(({ text }) => text ?? "");
  const operands = rule === undefined ? [] : operandsOf(rule, texts);
  const skipped = operands.slice(0, skippedCount(rule, texts));
  const files = operands.slice(skipped.length);
  for (const text of rule?.files === true ? files : []) addFile(text, rule?.revisions === true, places);
  for (const text of without(texts, skipped)) if (!isSought(rule, text)) addWordPlaces(text, places);
  for (const host of operandHosts(rule, operands)) places.hosts.add(host);
  return { hosts: [...places.hosts], paths: [...places.paths] };
}

/** `-S` and `-G` of git are followed by what it looks for. */
function isSought(rule: ProgramRule | undefined, text: string): boolean {
  return rule?.revisions === true && /^-[SG]/.test(text);
}

/** `-e` and `-f` give what `skips` counts last. */
function skippedCount(rule: ProgramRule | undefined, texts: readonly string[]): number {
  const isGiven = texts.some((text) => /^-[a-zA-Z]*[ef]|^--(?:regexp|file|files)\b/.test(text));
  const skips = rule?.skips ?? 0;
  return isGiven ? Math.max(0, skips - 1) : skips;
}

function without(texts: readonly string[], skipped: readonly string[]): readonly string[] {
  const rest = [...texts];
  for (const text of skipped) rest.splice(rest.indexOf(text), 1);
  return rest;
}

/** A file of a revision stands after its colon. */
function addFile(text: string, isRevision: boolean, { paths }: Places): void {
  if (text === "" || text.includes("://")) return;
  paths.add(text);
  const colon = isRevision ? text.indexOf(":") : -1;
  if (colon !== -1) paths.add(text.slice(colon + 1));
}

/** Returns what the words of git name: files, but not the subcommand, nor what it looks for or is told. */
export function gitPlaces({ subcommand }: GitFact): ProgramRule {
  return { effect: "unknown", files: true, revisions: true, skips: subcommand === "grep" ? 2 : 1, values: "cCSGm" };
}

interface Places {
  readonly hosts: Set<string>;
  readonly paths: Set<string>;
}

/** Adds the places that any word shows, whatever its program does with it. */
export function addWordPlaces(text: string, places: Places): void {
  const device = /\/dev\/(?:tcp|udp)\/([^/\s]+)(?:\/(\w+))?/.exec(text);
  if (device !== null) places.hosts.add(device[2] === undefined ? `${device[1]}` : `${device[1]}:${device[2]}`);
  for (const [found] of text.matchAll(url)) addUrl(found, places);
  const rest = text.replace(url, " ");
  if (isPath(rest)) places.paths.add(rest);
  for (const [, path = ""] of rest.matchAll(innerPath)) places.paths.add(path);
  const [, glued] = /^(?:-{1,2}[\w-]+=|-[A-Za-z]|@|[\w-]+=@?)([^=].*)$/s.exec(rest) ?? [];
  if (glued !== undefined && isPath(glued)) places.paths.add(glued);
}

function isPath(text: string): boolean {
  if (/[\s"'|;(){}]/.test(text) || text.startsWith("-") || text.startsWith("@")) return false;
  return /^(?:~|\/|\.{1,2}(?:\/|$)|\.\w)/.test(text) || (text.includes("/") && !text.includes("="));
}

function addUrl(text: string, { hosts, paths }: Places): void {
  const [, scheme = "", authority = "", rest = ""] = /^([^:]+):\/\/([^/?#\\]*)(.*)$/s.exec(text) ?? [];
  if (scheme.toLowerCase() === "file") paths.add(rest);
  else if (authority !== "") hosts.add(authority.slice(authority.lastIndexOf("@") + 1).toLowerCase());
}

function operandHosts(rule: ProgramRule | undefined, operands: readonly string[]): readonly string[] {
  switch (rule?.hosts) {
    case "all":
      return operands.flatMap((text) => hostOf(text.replace(/^@/, "").split(/[/?#]/, 1)[0] ?? ""));
    case "first":
      return firstHost(operands);
    case "remote":
      return operands.flatMap((text) => remoteHost(text));
    default:
      return [];
  }
}

function firstHost([first = "", second = ""]: readonly string[]): readonly string[] {
  const hosts = hostOf(first.split(/[/?#]/, 1)[0] ?? "");
  return /^\d{1,5}$/.test(second) ? hosts.map((host) => `${host}:${second}`) : hosts;
}

function hostOf(text: string): readonly string[] {
  const [, host, port] = hostName.exec(text) ?? [];
  if (host === undefined) return [];
  return [port === undefined ? host.toLowerCase() : `${host.toLowerCase()}:${port}`];
}

/** Returns the host of `host:path`, `user@host:path` and `host::module`. */
export function remoteHost(text: string): readonly string[] {
  const [, host] = /^(?:[^\s/@:]{1,64}@)?(\[[0-9a-f:.%]+\]|[\w.-]+):(?!\/\/)/i.exec(text) ?? [];
  return host === undefined ? [] : [host.toLowerCase()];
}
