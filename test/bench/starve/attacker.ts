import { setPriority } from "node:os";
import { attacks } from "./attack.ts";
import { attacker } from "./crew.ts";
import { Tally } from "./tally.ts";

/** What the attacker's process sends before it ends. */
export interface AttackReport {
  readonly cpuSeconds: number;
  readonly lines: readonly string[];
}

/**
 * Attacks `url` (second argument) as the first argument says, from the first message of its parent, which it answers once
 * the attack is prepared, until the second. On a machine of its own it would take no processor from the gateway; here it gets what others leave.
 */
setPriority(19);
const [name = "", url = ""] = process.argv.slice(2);
const attack = attacks[name];
if (attack === undefined) throw new TypeError(`expected an attack, got \`${name}\``);
const tally = new Tally();
process.once("disconnect", () => process.exit());
process.once("message", async () => {
  const ground = { url, key: attacker.key, tally };
  const before = process.cpuUsage();
  process.once("message", () => {
    const { user, system } = process.cpuUsage(before);
    const report: AttackReport = { cpuSeconds: (user + system) / 1e6, lines: tally.lines(5) };
    process.send?.(report, () => process.exit());
  });
  await attack.prepare?.(ground);
  process.send?.("prepared");
  attack.run(ground).catch((error: Error) => tally.add("failed", error.message));
});
