import type { Redaction } from "../../../core/action/policy.ts";
import { canaryOf } from "../../support/canary.ts";
import { choosingPlugin, redacting } from "../../support/choosing-plugin.ts";
import type { PluginFiles } from "../../support/wasm-plugin.ts";

/** What policy redacts. */
export const secret: string = canaryOf("redaction");
/** What only a policy on trial would have redacted. */
export const plain: string = canaryOf("no redaction");
/** In the answer whose redaction does not fit. */
export const misfit: string = canaryOf("misfit");
export const uri = "note://secret";

const head = "né😀 ";
const said = around(secret);
/** What is left of a text that holds the secret. */
export const left: string = around("[mark]");

/** A text in which bytes, code units and characters are counted differently. */
export function around(text: string): string {
  return `${head}${text} end`;
}

interface Leak {
  readonly name: string;
  /** What the upstream answers. */
  readonly answer: object;
  /** Where in it the secret is. */
  readonly places: readonly string[];
  /** What the client gets. */
  readonly shown: object;
}

/** Tools that say the secret, each in another part of its result. */
export const leaks: readonly Leak[] = [
  {
    name: "leak_text",
    answer: { result: { content: [{ type: "text", text: said }] } },
    places: ["/content/0/text"],
    shown: { content: [{ type: "text", text: left }] },
  },
  {
    name: "leak_structure",
    answer: {
      result: { content: [{ type: "text", text: said }], structuredContent: { "a/b": { mails: ["none", said] } } },
    },
    places: ["/content/0/text", "/structuredContent/a~1b/mails/1"],
    shown: { content: [{ type: "text", text: left }], structuredContent: { "a/b": { mails: ["none", left] } } },
  },
  {
    name: "leak_resource",
    answer: {
      result: {
        content: [
          { type: "resource", resource: { uri, text: said } },
          { type: "resource_link", uri, name: "note", description: said },
        ],
      },
    },
    places: ["/content/0/resource/text", "/content/1/description"],
    shown: {
      content: [
        { type: "resource", resource: { uri, text: left } },
        { type: "resource_link", uri, name: "note", description: left },
      ],
    },
  },
  {
    name: "leak_failure",
    answer: { result: { isError: true, content: [{ type: "text", text: said }] } },
    places: ["/content/0/text"],
    shown: { isError: true, content: [{ type: "text", text: left }] },
  },
];

function redact(rule: string, place: string, changed: Partial<Redaction> = {}): Redaction {
  const start = Buffer.byteLength(head);
  const end = start + Buffer.byteLength(secret);
  return { rule, pointer: `/output${place}`, start, end, replacement: "[mark]", ...changed };
}

function seen(tool: string): string {
  return `"tool":"${tool}","target"`;
}

/** All that the upstream answers, by tool and method. */
export const answers: Readonly<Record<string, object>> = {
  ...Object.fromEntries(leaks.map(({ name, answer }) => [name, answer])),
  leak_refusal: { error: { code: 4_711, message: said, data: { detail: said } } },
  leak_overlap: { result: { content: [{ type: "text", text: said }] } },
  leak_trial: { result: { content: [{ type: "text", text: around(plain) }] } },
  leak_bad: { result: { content: [{ type: "text", text: misfit }] } },
  "resources/list": { result: { resources: [{ uri, name: "note" }] } },
  "resources/templates/list": { result: { resourceTemplates: [] } },
  "prompts/list": { result: { prompts: [{ name: "leaky" }] } },
  "resources/read": { result: { contents: [{ uri, text: said }] } },
  "prompts/get": { result: { messages: [{ role: "user", content: { type: "text", text: said } }] } },
};

export const first: PluginFiles = choosingPlugin("first", [
  ...leaks.map(({ name, places }) => {
    return [seen(name), redacting(...places.map((place) => redact("first.mark", place)))] as const;
  }),
  [seen("leak_refusal"), redacting(redact("first.mark", "/message"), redact("first.mark", "/data/detail"))],
  [seen("resources/read"), redacting(redact("first.mark", "/contents/0/text"))],
  [seen("prompts/get"), redacting(redact("first.mark", "/messages/0/content/text"))],
  [seen("leak_overlap"), redacting(redact("first.start", "/content/0/text", { end: 12, replacement: "[first]" }))],
  [seen("leak_bad"), redacting(redact("first.beyond", "/content/0/text", { end: 999 }))],
]);
export const second: PluginFiles = choosingPlugin("second", [
  [seen("leak_overlap"), redacting(redact("second.rest", "/content/0/text", { start: 11, replacement: "[second]" }))],
]);
export const trial: PluginFiles = choosingPlugin("trial", [
  [seen("leak_trial"), redacting(redact("trial.mark", "/content/0/text", { end: 12 }))],
]);
