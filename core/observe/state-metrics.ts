import type { Gauge } from "prom-client";
import type { MetricRegistry } from "./metric-registry.ts";

const chainStates = ["ready", "failed", "refused"] as const;
const upstreamStates = ["idle", "starting", "up", "down"] as const;
const breakerStates = ["closed", "open", "half_open"] as const;
const approvalStates = ["pending", "approved"] as const;

/** The state of the parts, read at each scrape. Series count parts by state and never name a tenant. */
interface StateSource {
  readonly evidence: () => {
    readonly writable: boolean;
    /** `seq` of its last record, −1 for none. */
    readonly chains: readonly { readonly seq: number; readonly state: (typeof chainStates)[number] }[];
  };
  /** `fullest`: the largest share, 0 to 1, that a tenant's approvals take of the room for them. */
  readonly approvals: () => Readonly<Record<(typeof approvalStates)[number] | "fullest", number>>;
  readonly upstreams: () => readonly { readonly state: (typeof upstreamStates)[number] }[];
  readonly providers: () => readonly { readonly enabled: boolean; readonly breaker: (typeof breakerStates)[number] }[];
  /** Bytes of the disk that holds the state; undefined where there is none. */
  readonly disk: () => Promise<{ readonly free: number; readonly capacity: number } | undefined>;
}

/** Gauges of the state of the parts. */
export class StateMetrics {
  readonly #writable: Gauge;
  readonly #chains: Gauge<"state">;
  readonly #records: Gauge;
  readonly #longest: Gauge;
  readonly #approvals: Gauge<"state">;
  readonly #room: Gauge;
  readonly #upstreams: Gauge<"state">;
  readonly #providers: Gauge<"breaker">;
  readonly #free: Gauge;
  readonly #capacity: Gauge;
  #source: StateSource | undefined;

  constructor(registry: MetricRegistry) {
    this.#writable = registry.gauge(
      "gateway_evidence_writable",
      "1 while evidence can be written; at 0 no action is served",
    );
    this.#chains = registry.gauge(
      "gateway_evidence_chains",
      "Chains, one a tenant, by state; a tenant whose chain is refused is not served",
      "state",
    );
    this.#records = registry.gauge("gateway_evidence_records", "Records written to all chains");
    this.#longest = registry.gauge("gateway_evidence_longest_chain_records", "Records written to the longest chain");
    this.#approvals = registry.gauge("gateway_live_approvals", "Pending and approved approvals", "state");
    this.#room = registry.gauge(
      "gateway_approval_room_ratio",
      "Used share of the approval limit of the fullest tenant",
    );
    this.#upstreams = registry.gauge("gateway_upstreams", "Upstreams by their last known state", "state");
    this.#providers = registry.gauge(
      "gateway_providers",
      "Enabled providers by the state of their circuit breaker",
      "breaker",
    );
    this.#free = registry.gauge("gateway_data_free_bytes", "Free space of the disk that holds the state");
    this.#capacity = registry.gauge("gateway_data_capacity_bytes", "Size of the disk that holds the state");
  }

  /** Sets the source that is read at each scrape. */
  watch(source: StateSource): void {
    this.#source = source;
  }

  /** Updates all gauges. */
  async refresh(): Promise<void> {
    if (this.#source === undefined) return;
    const { evidence, approvals, upstreams, providers, disk } = this.#source;
    const { writable, chains } = evidence();
    const heads = chains.map(({ seq }) => seq + 1);
    this.#writable.set(writable ? 1 : 0);
    this.#records.set(heads.reduce((sum, head) => sum + head, 0));
    this.#longest.set(heads.reduce((longest, head) => Math.max(longest, head), 0));
    setCounts(this.#chains, "state", chainStates, chains);
    setCounts(this.#upstreams, "state", upstreamStates, upstreams());
    const asked = providers().filter(({ enabled }) => enabled);
    setCounts(this.#providers, "breaker", breakerStates, asked);
    const live = approvals();
    for (const state of approvalStates) this.#approvals.set({ state }, live[state]);
    this.#room.set(live.fullest);
    this.#setDisk(await disk());
  }

  /** A disk that is not there has no series: 0 bytes free would be an alarm. */
  #setDisk(space: Awaited<ReturnType<StateSource["disk"]>>): void {
    if (space === undefined) {
      this.#free.remove({});
      this.#capacity.remove({});
      return;
    }
    this.#free.set(space.free);
    this.#capacity.set(space.capacity);
  }
}

/** Sets the count of each state; 0 is a value too. */
function setCounts<Label extends string, State extends string>(
  gauge: Gauge<Label>,
  label: Label,
  states: readonly State[],
  each: readonly Readonly<Record<Label, State>>[],
): void {
  for (const state of states) {
    const labels: Partial<Record<Label, string>> = {};
    labels[label] = state;
    gauge.set(labels, each.filter((one) => one[label] === state).length);
  }
}
