import { type Capability, capabilities } from "../../action/capability.ts";

/** Verbs of tool names by what they do. A word that is not here says nothing, and a tool without one counts as `execute`. */
const verbs: Readonly<Record<Capability, string>> = {
  read: `get list read search find fetch show view describe lookup look count check inspect retrieve resolve browse compare
    analyze analyse extract status diff tree stat info history preview validate verify snapshot screenshot echo wait query scan watch map
    audit take help explain estimate calculate compute load peek`,
  generate: "generate ask chat prompt summarize summarise summarizer translate imagine research infer completion llm",
  network: `send email notify message share navigate goto visit crawl scrape request reply forward invite upload ping connect
    subscribe tweet webhook new`,
  write: `create write update edit add set put patch post insert append save move rename copy modify change replace assign
    unassign link fork push commit comment label tag star archive unarchive toggle enable disable restore pause resume schedule
    register upsert import attach detach close mark emulate resize init initialize configure mkdir touch store record download
    complete`,
  execute: `run exec execute eval evaluate invoke call trigger start stop launch spawn install shell bash command script terminal
    click type press drag fill hover handle test build compile restart reboot automate perform open select interact`,
  approve: "approve merge grant authorize authorise confirm elevate",
  deploy: "deploy release rollout promote migrate apply publish provision rollback",
  delete: `delete remove drop destroy purge erase truncate wipe clear reset uninstall revoke unlink rm rmdir kill terminate cancel
    discard`,
};

const capabilityByVerb: ReadonlyMap<string, Capability> = new Map(
  capabilities.flatMap((capability) => wordsIn(verbs[capability]).map((verb) => [verb, capability] as const)),
);

/** Verbs that also stand for reading: `open` a record, `select` an entry, `generate` a form of what is there. */
const ambiguous: ReadonlySet<string> = new Set(["open", "select", "generate"]);

/** Verbs that count wherever they stand in a name. */
const dangerous: ReadonlySet<string> = new Set(
  wordsIn(
    "delete remove destroy purge erase wipe truncate uninstall exec execute eval evaluate deploy shell bash sudo approve",
  ),
);

/** Words that join two verbs: both count. */
const joining: ReadonlySet<string> = new Set(["and", "or", "then"]);

/** Words for things that must not be read unseen. */
const secretWords: ReadonlySet<string> = new Set(
  wordsIn("secret secrets password passwords credential credentials token tokens env environment apikey apikeys"),
);

function wordsIn(text: string): readonly string[] {
  return text.split(/\s+/);
}

/** The words of a name in lower case: `getFile`, `get-file` and `get_file` are the same two. */
export function wordsOf(name: string): readonly string[] {
  return name
    .slice(0, 256)
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== "");
}

/** The meaning of the words of a name. */
export interface NameMeaning {
  readonly capability: Capability;
  readonly verb: string;
  /** True where the verb may also stand for reading. */
  readonly isAmbiguous: boolean;
}

/** Returns the stricter of two capabilities. */
export function stricter(a: Capability, b: Capability): Capability {
  return capabilities.indexOf(a) < capabilities.indexOf(b) ? b : a;
}

/** Returns the meaning of a name: of its first verb, or of a stricter one that counts beside it. Undefined without a verb. */
export function meaningOf(words: readonly string[]): NameMeaning | undefined {
  const first = words.findIndex((word) => capabilityByVerb.has(word));
  const verb = words[first];
  if (verb === undefined) return undefined;
  const others = words.filter(
    (word, at) => dangerous.has(word) || (at > first && joining.has(words[at - 1] ?? "") && capabilityByVerb.has(word)),
  );
  let [found, capability] = [verb, capabilityOfVerb(verb)];
  for (const other of others) {
    const stronger = stricter(capability, capabilityOfVerb(other));
    if (stronger !== capability) [found, capability] = [other, stronger];
  }
  return { capability, verb: found, isAmbiguous: ambiguous.has(found) };
}

function capabilityOfVerb(verb: string): Capability {
  return capabilityByVerb.get(verb) ?? "execute";
}

/** Returns the word that names a secret; undefined where there is none. */
export function secretWordIn(words: readonly string[]): string | undefined {
  const found = words.find((word) => secretWords.has(word));
  if (found !== undefined) return found;
  const at = words.findIndex((word, index) => /^keys?$/.test(word) && /^(?:api|private)$/.test(words[index - 1] ?? ""));
  return words[at];
}
