import { GatewayError } from "../../kernel/error.ts";
import { examineKeys } from "./api-key.ts";
import { examineClock } from "./clock.ts";
import { examineCollector } from "./collector.ts";
import { examineData } from "./data-folder.ts";
import { examineDisk } from "./disk.ts";
import { examineSync } from "./disk-sync.ts";
import { examineExposure } from "./exposure.ts";
import { examineExtensions } from "./extension.ts";
import { type Examine, type Finding, fail, type Patient } from "./finding.ts";
import { examineOpenFiles } from "./open-file.ts";
import { examinePermissions } from "./permission.ts";
import { examinePorts } from "./port.ts";
import { examineProviders } from "./provider.ts";
import { examineTrust } from "./trust.ts";
import { examineUpstreams } from "./upstream.ts";
import { examineWebhooks } from "./webhook.ts";
import { examineWitnesses } from "./witness.ts";

/** Everything that can be examined once there is a configuration, in the order it is told. */
export const examinations: Readonly<Record<string, Examine>> = {
  ports: examinePorts,
  exposure: examineExposure,
  keys: examineKeys,
  permissions: examinePermissions,
  "open files": examineOpenFiles,
  clock: examineClock,
  disk: examineDisk,
  "disk sync": examineSync,
  data: examineData,
  extensions: examineExtensions,
  trust: examineTrust,
  upstreams: examineUpstreams,
  providers: examineProviders,
  webhooks: examineWebhooks,
  collector: examineCollector,
  witnesses: examineWitnesses,
};

/** A finding, and the check that made it. */
export interface Told extends Finding {
  readonly check: string;
}

const usualDeadlineMs = 30_000;

/** All of it, one check after the other. One that breaks, or does not come to an end in time, has failed. */
export async function examine(patient: Patient, deadlineMs: number = usualDeadlineMs): Promise<readonly Told[]> {
  const told: Told[] = [];
  for (const [check, look] of Object.entries(examinations)) {
    const found = await withDeadline(look(patient), deadlineMs).catch((cause) => [
      fail(`cannot be examined: ${GatewayError.from(cause).message}`, "mend that first"),
    ]);
    told.push(...found.map((finding) => ({ check, ...finding })));
  }
  return told;
}

async function withDeadline<T>(work: Promise<T>, deadlineMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end within ${deadlineMs} ms`)), deadlineMs);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
