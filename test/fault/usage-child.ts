import { openStore } from "../../core/store/open.ts";
import { UsageStore } from "../../core/usage/usage-store.ts";

/** Counts requests without end in the data folder that it is given, and prints how many it knows to be written. */
const [dir = "."] = process.argv.slice(2);
const store = await openStore({ dir, enabled: true });
const warn = (message: string): void => {
  throw new Error(message);
};
const usage = new UsageStore({ store, isKept: () => false, onWarning: warn });
const row = { principal: "p", keyId: "k", provider: "p", model: "m", requests: 1, input: 2, output: 3, cachedInput: 0 };
for (let counted = 0; ; ) {
  for (let turn = 0; turn < 100; turn++, counted++) usage.add("acme", { ...row, day: "2026-11-22" });
  await usage.flush();
  process.stdout.write(`${counted}\n`);
}
