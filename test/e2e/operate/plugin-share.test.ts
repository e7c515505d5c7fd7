import { expect } from "chai";
import { choosingPlugin } from "../../support/choosing-plugin.ts";
import { PackFolders } from "../../support/policy-pack.ts";
import { type Called, ShareWorld } from "../../support/share-world.ts";
import { abstain } from "../../support/wasm-plugin.ts";

/** So much memory that every call runs in a thread of the pool. */
const farPages = 32;
/** Fuel for a hundred milliseconds or so, used up. */
const fuel = 50_000_000;
const lanes = 24;
const calls = 20;

/** Where each call needs a thread of plugins, and one key's calls need one for long. */
describe("one key whose calls keep the threads of plugins busy [S77]", function () {
  this.timeout(120_000);
  const folders = new PackFolders();
  let world: ShareWorld;

  before(async () => {
    const counter = "(i32.const 60000)";
    const spinning = `(loop $more
      (i32.store ${counter} (i32.add (i32.load ${counter}) (i32.const 1)))
      (br_if $more (i32.lt_u (i32.load ${counter}) (i32.const 2000000))))`;
    const files = choosingPlugin("far", [["keeps-busy", abstain, spinning]], farPages);
    const manifest = `${files["plugin.yaml"]}limits: { fuel: ${fuel}, memory_pages: ${farPages} }\n`;
    const path = await folders.write({ ...files, "plugin.yaml": manifest });
    // On a busy machine a call that has a thread may take long; that is not the subject.
    const policy = `plugins: [{ path: "${path}", phases: [input] }]\n  deadline_ms: 5000`;
    // What the key has under way when it is first refused may be all that its tenant has: this is about the key's share.
    world = await ShareWorld.start({ connection: "shared", policy, limits: "tenant_cpu_percent: 100" });
  });

  after(async () => {
    await world?.stop();
    await folders.remove();
  });

  it("is refused by name until it has paid, and blocks nobody else", async () => {
    let isOver = false;
    const answers: Called[] = [];
    const attack = async (): Promise<void> => {
      while (!isOver) answers.push(await world.call("attacker", { text: "keeps-busy" }));
    };
    const attacked = Promise.all(Array.from({ length: lanes }, attack));
    const others: Called[] = [];
    while (others.length < calls * 2 || !answers.some(({ status }) => status === 429)) {
      for (const holder of ["neighbour", "colleague"] as const) others.push(await world.call(holder, { text: "mine" }));
    }
    isOver = true;
    await attacked;
    for (const { error, result } of others) expect([error, result?.isError]).to.deep.equal([undefined, undefined]);
    const refused = answers.flatMap(({ error }) => error ?? []);
    expect(new Set(refused.map(({ data }) => data.reason))).to.deep.equal(new Set(["key_cpu"]));
    for (const { message } of refused) {
      expect(message).to.match(
        /at most 25 % of the gateway's processor time of this key, got more; try again in \d+ s$/,
      );
    }
    const blocked = answers.filter(({ result }) => result?.isError === true);
    for (const { result } of blocked) expect(result?.content?.[0]?.text).to.match(/to wait for a thread|to be free/);
  });
});
