import { eventRange, keyRecordRange, seqIn, sessionKey, sessionRecordRange } from "./key-space.ts";
import { readFirstKept } from "./pruned-prefix.ts";
import type { SessionSummary } from "./session-head.ts";
import type { StoreView } from "./store-view.ts";

/** Events of a tenant that bear on every session: keys, configuration, extensions, what was erased or pruned. */
const sharedKinds = ["configuration", "extension", "redaction", "retention"] as const;
/** Events that bear on the session they name. */
const ownKinds = ["approval", "session", "ticket"] as const;

/**
 * The numbers of a session's records, but for pruned ones, and of the events a verifier needs beside them, in the order of the chain;
 * undefined where they are more than `most`.
 */
export async function readSessionSeqs(
  view: StoreView,
  tenant: string,
  session: string,
  most: number,
): Promise<readonly number[] | undefined> {
  const firstKept = await readFirstKept(view, tenant);
  const seqs: number[] = [];
  for await (const [, at] of view.entries(sessionRecordRange(tenant, session))) {
    // One entry before the cut stays where the session goes on after it, more while it is being pruned.
    if (Number(at) >= firstKept && seqs.push(Number(at)) > most) return undefined;
  }
  for (const range of [keyRecordRange(tenant), ...sharedKinds.map((kind) => eventRange(tenant, kind))]) {
    for await (const [key] of view.entries({ ...range, limit: most + 1 })) seqs.push(seqIn(key));
  }
  // What stops a principal, the tenant or the whole gateway stops this session too.
  const wider = new Set(["tenant", "gateway", await readPrincipal(view, tenant, session)]);
  for (const kind of ownKinds) {
    for await (const [key, about] of view.entries(eventRange(tenant, kind))) {
      const isOwn = about === session || (kind === "session" && wider.has(about));
      if (isOwn && seqs.length <= most) seqs.push(seqIn(key));
    }
  }
  return seqs.length > most ? undefined : seqs.sort((a, b) => a - b);
}

/** Whose session it is. */
async function readPrincipal(view: StoreView, tenant: string, session: string): Promise<string> {
  const summary = await view.get(sessionKey(tenant, session));
  return summary === undefined ? session : (JSON.parse(summary) as SessionSummary).principal;
}
