import { RecentMap } from "../action/recent-map.ts";
import type { Role } from "../action/role.ts";

/** A tool that policy hid from the agents of a role when one of them last listed the tools. */
export interface HiddenTool {
  readonly tool: string;
  readonly role: Role;
  /** The rule that hides it; null where no rule allows it. */
  readonly rule: string | null;
  /** The rule's message. */
  readonly reason: string;
}

/** The agents of a role, and a tool that they would be shown. */
interface Listed {
  readonly tenant: string;
  readonly role: Role;
  readonly upstream: string;
  readonly tool: string;
}

const maxHidden = 10_000;

/** The tools that policy hides from agents, for their operators: the last 10,000. */
export class HiddenTools {
  readonly #hidden = new RecentMap<{ readonly from: Listed; readonly tool: HiddenTool }>();

  /** Records whether the tool was hidden; null: it was shown. */
  update(from: Listed, by: Pick<HiddenTool, "rule" | "reason"> | null): void {
    const key = JSON.stringify([from.tenant, from.upstream, from.tool, from.role]);
    if (by === null) {
      this.#hidden.delete(key);
      return;
    }
    this.#hidden.set(key, { from, tool: { tool: from.tool, role: from.role, ...by } });
    this.#hidden.forgetOldest(maxHidden);
  }

  /** Returns the tools of an upstream that are hidden from agents of the tenant, by name. */
  of(tenant: string, upstream: string): readonly HiddenTool[] {
    const found: HiddenTool[] = [];
    for (const [, { from, tool }] of this.#hidden.entries()) {
      if (from.tenant === tenant && from.upstream === upstream) found.push(tool);
    }
    return found.sort((one, other) => (`${one.tool} ${one.role}` < `${other.tool} ${other.role}` ? -1 : 1));
  }
}
