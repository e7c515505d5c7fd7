import { cp, mkdtemp, open, readdir, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import type { Approval } from "../../core/action/approval.ts";
import { openStore, type Store } from "../../core/store/open.ts";
import { type HeldOptions, HeldSite, overHttp, toldOf } from "../support/held-site.ts";
import { MoodyUpstream } from "../support/moody-upstream.ts";
import { SseAgent } from "../support/sse-agent.ts";
import { until } from "../support/webhook-receiver.ts";

const hourMs = 3_600_000;
const shiftedClock = fileURLToPath(new URL("../fixture/shifted-clock.js", import.meta.url));

/** The upstream's own log is the witness. Without the seal of entries and the reading of the chain these fail. */
describe("approvals over a start", () => {
  let folder: string;
  let upstream: MoodyUpstream;
  let site: HeldSite;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "approval-start-"));
    upstream = await MoodyUpstream.start();
    site = new HeldSite({
      upstreams: [overHttp("moody", upstream.url)],
      folder,
      more: "log: { level: warn }",
    });
    await site.start();
  });

  afterEach(async () => {
    await site.stop().catch(() => undefined);
    upstream.stop();
    await rm(folder, { recursive: true });
  });

  it("go on where they are bound to a key and a label, and those that are used stay used [S56] [R3.1-8] [R3.1-9] [R2.8-5]", async () => {
    const used = await site.holdAndApprove("echo", { to: "used" });
    await site.call("echo", { to: "used" });
    const id = await site.holdAndApprove("echo", { to: "later" }, "agent", "label");
    const pending = await site.hold("echo", { to: "pending" });
    for (const end of [() => site.stop(), () => site.kill9()]) {
      await end();
      await site.start();
      expect(await states(used, id, pending)).to.deep.equal(["consumed", "approved", "pending"]);
    }
    expect(toldOf(await site.call("echo", { to: "later" })).executed).to.equal(false);
    expect((await site.call("echo", { to: "later" }, "agent", "label")).result?.isError).to.equal(undefined);
    expect(toldOf(await site.call("echo", { to: "used" })).executed).to.equal(false);
    await site.approve(pending);
    expect((await site.call("echo", { to: "pending" })).result?.isError).to.equal(undefined);
    expect(marks()).to.deep.equal(["used", "later", "pending"]);
    await site.stop();
    await site.start();
    expect(await states(used, id, pending)).to.deep.equal(["consumed", "consumed", "consumed"]);
  });

  it("end where they belong to a connection: it ended with the process [S56]", async () => {
    const agent = await SseAgent.open(site.gateway.url, site.key("agent"));
    const [, id = ""] = /Approval (apr_[0-9a-f]{32}) is/.exec(JSON.stringify(await agent.echo({ to: "sse" }))) ?? [];
    await site.approve(id);
    await site.kill9();
    await site.start();
    expect(await site.show(id)).to.include({ state: "expired", reason: "connection_closed" });
    const next = await SseAgent.open(site.gateway.url, site.key("agent"));
    expect(JSON.stringify(await next.echo({ to: "sse" }))).to.contain("Nothing was executed");
    expect(await callAll("sse")).to.deep.equal([false]);
    expect(marks()).to.deep.equal([]);
    for (const each of [agent, next]) each.hangUp();
  });

  it("end, persisted and on record, where an entry has no trusted identity binding [R3.1-7] [R9-5]", async () => {
    const pending = await site.hold("echo", { to: "pending" });
    const approved = await site.holdAndApprove("echo", { to: "approved" });
    await offline(async (store) => {
      for (const id of [pending, approved]) {
        const { principal: _, session: __, seal: ___, ...unbound } = await entry(store, id);
        await store.put(`acme/approval/${id}`, JSON.stringify(unbound));
      }
    });
    expect(await callAll("pending", "approved")).to.deep.equal([false, false]);
    await offline(async (store) => {
      for (const id of [pending, approved]) {
        expect(await entry(store, id)).to.include({ state: "expired", reason: "identity_not_bound" });
        expect(await store.get(`acme/approval-live/${id}`)).to.equal(undefined);
      }
    });
    expect(await site.evidence.verify()).to.include({ ok: true });
    expect(marks()).to.deep.equal([]);
  });

  for (const [what, edit] of [
    ["used to approved", ({ consumed_at: _, consumed_seq: __, ...rest }: Approval) => ({ ...rest, state: "approved" })],
    ["a later end", (each: Approval) => ({ ...each, state: "approved", expires_at: "2099-01-01T00:00:00.000Z" })],
    ["another fingerprint", (each: Approval) => ({ ...each, state: "approved", fingerprint: each.task_fingerprint })],
    ["another decision", (each: Approval) => ({ ...each, state: "approved", held_seq: 1 })],
  ] as const) {
    it(`are not used again where somebody changed an entry in the store: ${what} [S46] [R7-10]`, async () => {
      const used = await site.holdAndApprove("echo", { to: "used" });
      await site.call("echo", { to: "used" });
      await offline(async (store) => {
        await store.put(`acme/approval/${used}`, JSON.stringify(edit(await entry(store, used))));
        await store.put(`acme/approval-live/${used}`, "");
      });
      expect(await callAll("used")).to.deep.equal([false]);
      expect(marks()).to.deep.equal(["used"]);
      expect(await site.evidence.verify()).to.include({ ok: true });
    });
  }

  it("are not given where somebody changed pending to approved in the store [S46] [R7-10]", async () => {
    const id = await site.hold("echo", { to: "pending" });
    await offline(async (store) => {
      await store.put(`acme/approval/${id}`, JSON.stringify({ ...(await entry(store, id)), state: "approved" }));
    });
    expect(await callAll("pending")).to.deep.equal([false]);
    expect(marks()).to.deep.equal([]);
  });

  it("are not used again on an older copy of the state: it does not start [S46]", async () => {
    await site.holdAndApprove("echo", { to: "used" });
    await site.stop();
    await cp(join(folder, "data/state"), join(folder, "older"), { recursive: true });
    await site.start();
    await site.call("echo", { to: "used" });
    await site.stop();
    await rm(join(folder, "data/state"), { recursive: true });
    await cp(join(folder, "older"), join(folder, "data/state"), { recursive: true });
    const refusal = await site.start().catch((error: Error) => error.message);
    expect(refusal).to.match(/gateway: evidence cannot be written: .* is behind its high-water mark/);
    expect(marks()).to.deep.equal(["used"]);
  });

  it("are not used again on an older copy of the whole folder, where a witness is elsewhere [S46]", async () => {
    const witness = join(folder, "witness");
    const witnessed = {
      more: `log: { level: warn }\nevidence: { witnesses: [{ name: vault, type: file, path: "${witness}", interval_ms: 1000 }] }`,
    };
    await site.stop();
    await site.start(witnessed);
    await site.holdAndApprove("echo", { to: "used" });
    await site.stop();
    await cp(join(folder, "data"), join(folder, "older"), { recursive: true });
    await site.start(witnessed);
    await site.call("echo", { to: "used" });
    await site.stop();
    await rm(join(folder, "data"), { recursive: true });
    await cp(join(folder, "older"), join(folder, "data"), { recursive: true });
    const started = await site.start(witnessed).then(
      () => true,
      () => false,
    );
    if (started) expect((await site.call("echo", { to: "used" })).status).to.equal(503);
    expect(marks()).to.deep.equal(["used"]);
  });

  for (const [what, damage] of [
    ["its newest log is cut", (state: string) => onNewest(state, ".log", (path, size) => truncate(path, size - 40))],
    [
      "its newest log is cut in half",
      (state: string) => onNewest(state, ".log", (path, size) => truncate(path, Math.floor(size / 2))),
    ],
    [
      "a bit at the end of its newest log is another",
      (state: string) => onNewest(state, ".log", (path, size) => flip(path, size - 200)),
    ],
    [
      "a bit in the middle of its newest log is another",
      (state: string) => onNewest(state, ".log", (path, size) => flip(path, Math.floor(size / 2))),
    ],
    ["its newest log is gone", (state: string) => onNewest(state, ".log", (path) => rm(path))],
    ["its manifest is gone", (state: string) => onNewest(state, "MANIFEST", (path) => rm(path))],
    ["its list of files is gone", (state: string) => rm(join(state, "CURRENT"))],
  ] as const) {
    it(`are not used again on a store of which ${what} [S46]`, async () => {
      await site.holdAndApprove("echo", { to: "used" });
      await site.call("echo", { to: "used" });
      await site.holdAndApprove("echo", { to: "later" });
      await site.kill9();
      await damage(join(folder, "data/state"));
      const refusal = await site.start().then(
        () => undefined,
        (error: Error) => error.message,
      );
      if (refusal === undefined) {
        expect((await callAll("used"))[0]).to.equal(false);
        await callAll("later", "later");
      } else expect(refusal).to.match(/gateway: (state|evidence)/);
      expect(marks().filter((mark) => mark === "used")).to.have.length(1);
      expect(marks().filter((mark) => mark === "later").length).to.be.below(2);
    });
  }

  it("do not last longer with the clock set back, and do not come back with it set forward and back [S54]", async () => {
    await site.stop();
    await site.start({ ...clocked(), approvals: "review_seconds: 60, use_seconds: 2" });
    const back = await site.holdAndApprove("echo", { to: "back" });
    await setClock(-hourMs);
    await sleep(2_100);
    expect(await callAll("back")).to.deep.equal([false]);
    expect((await site.show(back)).state).to.equal("expired");
    await setClock(0);
    const forward = await site.holdAndApprove("echo", { to: "forward" });
    await setClock(hourMs);
    await until(async () => (await site.show(forward)).state === "expired", "the end of the approval");
    await setClock(0);
    await sleep(100);
    expect(await callAll("forward")).to.deep.equal([false]);
    expect((await site.review(forward, "approve")).status).to.equal(409);
    expect(marks()).to.deep.equal([]);
  });

  it("end at a start with the clock set back: how long they waited nobody can say [S54]", async () => {
    const approved = await site.holdAndApprove("echo", { to: "approved" });
    await site.kill9();
    await setClock(-hourMs);
    await site.start(clocked());
    expect(await callAll("approved")).to.deep.equal([false]);
    expect(await site.show(approved)).to.include({ state: "expired", reason: "clock_set_back" });
    await site.stop();
    await setClock(0);
    await site.start(clocked());
    expect(await callAll("approved")).to.deep.equal([false]);
    expect(await site.show(approved)).to.include({ state: "expired", reason: "clock_set_back" });
    expect(marks()).to.deep.equal([]);
  });

  /** Whether each of these calls was dispatched. */
  async function callAll(...to: readonly string[]): Promise<readonly boolean[]> {
    const passed: boolean[] = [];
    for (const each of to) {
      const { status, result } = await site.call("echo", { to: each });
      passed.push(status === 200 && result?.isError !== true);
    }
    return passed;
  }

  function marks(): readonly string[] {
    return upstream.calls.map((call) => (call.arguments as { to: string }).to);
  }

  async function states(...ids: readonly string[]): Promise<readonly string[]> {
    return Promise.all(ids.map(async (id) => (await site.show(id)).state));
  }

  /** Changes the store while no gateway runs on it. */
  async function offline(act: (store: Store) => Promise<void>): Promise<void> {
    await site.stop();
    const store = await openStore({ dir: join(folder, "data"), enabled: true });
    await act(store).finally(() => store.close());
    await site.start();
  }

  /** A start whose clock `setClock` moves. */
  function clocked(): Partial<HeldOptions> {
    return { env: { NODE_OPTIONS: `--import=${shiftedClock}`, CLOCK_OFFSET: join(folder, "offset") } };
  }

  async function setClock(offsetMs: number): Promise<void> {
    await writeFile(join(folder, "offset"), String(offsetMs));
    await sleep(60);
  }
});

async function entry(store: Store, id: string): Promise<Approval & { seal?: string }> {
  return JSON.parse((await store.get(`acme/approval/${id}`)) ?? "null") as Approval;
}

async function onNewest(
  state: string,
  kind: ".log" | "MANIFEST",
  act: (path: string, size: number) => Promise<void>,
): Promise<void> {
  const names = (await readdir(state)).filter((name) => name.endsWith(kind) || name.startsWith(kind));
  const path = join(state, names.toSorted().at(-1) ?? "");
  await act(path, (await stat(path)).size);
}

async function flip(path: string, at: number): Promise<void> {
  const file = await open(path, "r+");
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, at);
  await file.write(Buffer.from([(buffer[0] ?? 0) ^ 1]), 0, 1, at);
  await file.close();
}
