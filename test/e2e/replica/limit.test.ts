import { expect } from "chai";
import { Agent, type Answer } from "../../support/agent.ts";
import { HeldSite, overHttp, type Person } from "../../support/held-site.ts";
import { allowEverything } from "../../support/pack.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { ReplicaGroup } from "../../support/replica-group.ts";
import { eventually } from "../../support/replica-site.ts";
import { roundsOf } from "../../support/rounds.ts";
import { type Issued, ticketRules } from "../../support/ticket-world.ts";

const rounds = roundsOf(1, 30);
const atOnce = 60;
const replicas = [0, 1, 2] as const;

/** Three replicas before one recording upstream, and the people of one site. */
class LimitedSite {
  readonly upstream: Recorder;
  readonly people: HeldSite;
  readonly group: ReplicaGroup;

  private constructor(upstream: Recorder, people: HeldSite, group: ReplicaGroup) {
    this.upstream = upstream;
    this.people = people;
    this.group = group;
  }

  /** `more`: further top-level keys of the configuration. */
  static async start(more: string, rules: Readonly<Record<string, string>> = {}): Promise<LimitedSite> {
    const upstream = await startRecorder();
    const people = new HeldSite({ upstreams: [overHttp("recorder", upstream.url)], more });
    const files = { ...allowEverything("packs/open"), ...rules };
    const group = await ReplicaGroup.create({ config: people.config(), files, leaseMs: 3_000, limitsShares: true });
    const site = new LimitedSite(upstream, people, group);
    await Promise.all(replicas.map((index) => group.start(index)));
    await eventually("an owner", async () => (await site.call(0, "before", undefined, "foreign")) !== undefined);
    return site;
  }

  /** Calls `echo` at a replica, on a new connection. Undefined where no whole answer came. */
  async call(index: number, mark: string, ticket?: string, person: Person = "agent"): Promise<Answer | undefined> {
    const agent = new Agent(this.group.member(index).url, this.people.key(person), "work", ticket);
    const answer = await agent.call("echo", { mark }).catch(() => undefined);
    await agent.hangUp();
    return answer;
  }

  /** Calls at all replicas, one call at a time by each agent, for as long as `use` runs. Returns what they were answered. */
  async whileCalling(
    agents: number,
    mark: string,
    ticket: string,
    use: () => Promise<void>,
  ): Promise<readonly (Answer | undefined)[]> {
    let isOver = false;
    const answers: (Answer | undefined)[] = [];
    const work = async (agent: number): Promise<void> => {
      for (let turn = agent; !isOver; turn++) answers.push(await this.call(turn % 3, mark, ticket));
    };
    const working = Promise.all(Array.from({ length: agents }, (_, agent) => work(agent)));
    try {
      await use();
    } finally {
      isOver = true;
      await working;
    }
    return answers;
  }

  /** How many calls with a mark reached the upstream: its own log is the witness. */
  async reached(mark: string): Promise<number> {
    return (await this.upstream.calls()).filter(({ body }) => body.includes(`"${mark}"`)).length;
  }

  async ask<T>(index: number, method: string, path: string, body?: object): Promise<T> {
    const response = await fetch(`${this.group.member(index).adminUrl}/admin/v1/${path}`, {
      method,
      headers: { "x-api-key": this.people.key("rita"), "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    expect(response.status, text).to.equal(200);
    return JSON.parse(text) as T;
  }

  /** A ticket for `agent`, issued at a replica. */
  issue(index: number, uses: number): Promise<Issued> {
    const scope = { tools: ["echo"], targets: ["recorder"], capabilities: ["execute"] };
    return this.ask(index, "POST", "tickets", {
      principal: this.people.principal("agent"),
      ...scope,
      max_uses: uses,
      ttl_seconds: 3_600,
    });
  }

  async stop(): Promise<void> {
    await this.group.stop();
    await this.upstream.stop();
  }
}

function isExecuted(answer: Answer | undefined): boolean {
  return answer?.status === 200 && answer.error === undefined && answer.result?.isError !== true;
}

const otherwiseUnlimited =
  "key_cpu_percent: 100, tenant_cpu_percent: 100, key_share_percent: 100, tenant_share_percent: 100";
const unlimited = `key_calls_per_minute: 1000000, tenant_calls_per_minute: 1000000, ${otherwiseUnlimited}`;

describe("uses of a ticket, on three replicas", () => {
  let site: LimitedSite;

  before(async () => {
    site = await LimitedSite.start(`limits: { ${unlimited} }`, {
      "packs/open/rules/ticket.yaml": ticketRules,
    });
  });

  after(() => site.stop());

  async function listed(index: number, { ticket }: Issued): Promise<object | undefined> {
    const { items } = await site.ask<{ items: readonly { readonly id: string }[] }>(index, "GET", "tickets?limit=500");
    return items.find(({ id }) => id === ticket.id);
  }

  for (let round = 1; round <= rounds; round++) {
    it(`are as many as it says when ${atOnce} calls come to all at once (${round}) [S86]`, async () => {
      const mark = `ticket-${round}`;
      const issued = await site.issue(round % 3, 7);
      const answers = await Promise.all(
        Array.from({ length: atOnce }, (_, turn) => site.call(turn % 3, mark, issued.token)),
      );
      expect([answers.filter(isExecuted).length, await site.reached(mark)]).to.deep.equal([7, 7]);
      for (const index of replicas) {
        expect(await listed(index, issued), `replica ${index}`).to.include({ state: "used_up", uses: 7 });
      }
    });

    it(`are no more when the owner is killed amid the calls (${round}) [S86]`, async () => {
      const mark = `ticket-killed-${round}`;
      const issued = await site.issue(round % 3, 40);
      const killed = site.group.owner();
      const next = (killed + 1) % 3;
      let before = 0;
      const answers = await site.whileCalling(6, mark, issued.token, async () => {
        await eventually("some uses", async () => (await site.reached(mark)) >= 10);
        await site.group.member(killed).kill9();
        before = await site.reached(mark);
        await eventually("the ticket to be used up", async () => {
          const refused = await site.call(next, `${mark}-after`, issued.token);
          return JSON.stringify(refused ?? {}).includes("used_up");
        });
      });
      expect(before).to.be.below(40);
      const executed = (await site.reached(mark)) + (await site.reached(`${mark}-after`));
      expect(executed).to.be.within(before + 1, 40);
      expect(answers.filter(isExecuted).length).to.be.at.most(executed);
      expect(await listed(next, issued)).to.include({ state: "used_up", uses: 40 });
      await site.group.start(killed);
    });
  }
});

describe("calls a minute, on three replicas", () => {
  let site: LimitedSite;
  afterEach(() => site.stop());

  const perMinute = 30;

  /** What one bucket gains until now. */
  function refilledSince(ms: number): number {
    return Math.ceil(((performance.now() - ms) * perMinute) / 60_000);
  }

  /** Sends more calls than a bucket has, to these replicas at once, and returns how many were executed. */
  async function burst(mark: string, at: readonly number[], people: readonly Person[]): Promise<number> {
    const answers = await Promise.all(
      Array.from({ length: 3 * perMinute }, (_, turn) =>
        site.call(at[turn % at.length] ?? 0, mark, undefined, people[turn % people.length]),
      ),
    );
    const executed = answers.filter(isExecuted).length;
    expect(await site.reached(mark)).to.equal(executed);
    const refused = answers.filter((answer) => !isExecuted(answer));
    expect(new Set(refused.map((answer) => answer?.error?.data?.code))).to.deep.equal(new Set(["RATE_LIMITED"]));
    return executed;
  }

  for (const [whose, limits, people] of [
    ["a key", "key_calls_per_minute", ["agent"]],
    ["a tenant", "tenant_calls_per_minute", ["agent", "other"]],
  ] as const) {
    it(`of ${whose} are one bucket for all of them, and one more for each takeover [S86]`, async () => {
      site = await LimitedSite.start(`limits: { ${limits}: ${perMinute}, ${otherwiseUnlimited} }`);
      const startedMs = performance.now();
      const first = await burst("first", replicas, people);
      expect(first).to.be.within(perMinute, perMinute + refilledSince(startedMs));

      const killed = site.group.owner();
      await site.group.member(killed).kill9();
      // The bucket is in the owner's memory: the next one begins with a full one.
      const killedMs = performance.now();
      const others = replicas.filter((index) => index !== killed);
      const next = await burst("next", others, people);
      expect(next).to.be.within(perMinute, perMinute + refilledSince(killedMs));
      // One that comes back and forwards adds none.
      await site.group.start(killed);
      const again = await burst("again", replicas, people);
      expect(next + again).to.be.at.most(perMinute + refilledSince(killedMs));
    });
  }
});
