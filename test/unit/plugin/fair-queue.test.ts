import { expect } from "chai";
import { type Claim, FairQueue } from "../../../core/plugin/plugin-pool.ts";

let keys = 0;
/** Of a key of its own unless one is given. */
const claim = (plugin: string, tenant: string, bytes = 1, key = `key ${++keys}`): Claim => ({
  plugin,
  tenant,
  key,
  bytes,
});
const any = (): boolean => true;

function fill(queue: FairQueue<Claim>, makeClaim: (n: number) => Claim): number {
  let count = 0;
  while (queue.push(makeClaim(count)) === undefined) count++;
  return count;
}

function takeAll(queue: FairQueue<Claim>): string[] {
  const taken: string[] = [];
  for (let next = queue.take(any); next !== undefined; next = queue.take(any)) {
    taken.push(`${next.plugin}${next.tenant}`);
  }
  return taken;
}

describe("FairQueue", () => {
  it("serves tenants in turn, and the plugins that a key of each calls in turn, whoever came in numbers", () => {
    const queue = new FairQueue<Claim>();
    for (let n = 0; n < 4; n++) queue.push(claim("p", "1", 1, "one"));
    queue.push(claim("p", "2"));
    queue.push(claim("q", "1", 1, "one"));
    queue.push(claim("q", "1", 1, "one"));
    expect(takeAll(queue)).to.deep.equal(["p1", "p2", "q1", "p1", "q1", "p1", "p1"]);
  });

  it("[S35, S77] lets one call of a key that waits at many plugins go before others' calls, not one at each", () => {
    const queue = new FairQueue<Claim>();
    for (let n = 0; n < 36; n++) queue.push(claim(`slow ${n}`, "1", 1, "greedy"));
    queue.push(claim("late", "2"));
    queue.push(claim("late", "1", 1, "modest"));
    expect(takeAll(queue).slice(0, 4)).to.deep.equal(["slow 01", "late2", "late1", "slow 11"]);
  });

  it("serves the keys of a tenant in turn, and leaves room for its others beside one of them [S77]", () => {
    const queue = new FairQueue<Claim>();
    const many = fill(queue, (n) => claim(`p ${n % 2}`, "1", 1, "many"));
    expect(many).to.equal(64);
    expect(queue.push(claim("q", "1", 1, "many"))).to.equal(
      "expected at most 64 calls of one key to wait for a thread of plugins",
    );
    expect(queue.push(claim("p 0", "1", 1, "one"))).to.equal(undefined);
    const keys = Array.from({ length: 4 }, () => queue.take(({ plugin }) => plugin === "p 0")?.key);
    expect(keys).to.deep.equal(["many", "one", "many", "many"]);
  });

  it("does not let one who comes anew each time pass one who waits", () => {
    const queue = new FairQueue<Claim>();
    queue.push(claim("p", "1"));
    queue.push(claim("p", "2"));
    const served: string[] = [];
    for (let n = 0; n < 4; n++) {
      const next = queue.take(any);
      served.push(next?.tenant ?? "");
      if (next !== undefined && next.tenant !== "2") queue.push(claim("p", `new ${n}`));
    }
    expect(served.indexOf("2")).to.equal(1);
  });

  it("passes over what may not be done now, and leaves it waiting", () => {
    const queue = new FairQueue<Claim>();
    const [first, second] = [claim("p", "1"), claim("q", "1")];
    queue.push(first);
    queue.push(second);
    expect(queue.take(({ plugin }) => plugin === "q")).to.equal(second);
    expect(queue.take(({ plugin }) => plugin === "q")).to.equal(undefined);
    expect(queue.length).to.equal(1);
    queue.remove(first);
    expect(queue.take(any)).to.equal(undefined);
  });

  it("leaves room for others: a tenant at a plugin, a plugin, and a tenant have their share of places", () => {
    const queue = new FairQueue<Claim>();
    const one = fill(queue, () => claim("p", "1"));
    const plugin = one + fill(queue, (n) => claim("p", `other ${n}`));
    const tenant = one + fill(queue, (n) => claim(`other ${n}`, "1"));
    const all = plugin + tenant - one + fill(queue, (n) => claim(`p ${n}`, `t ${n}`));
    expect([plugin, tenant, all]).to.deep.equal([2 * one, 2 * one, 4 * one]);
    expect(queue.length).to.equal(all);
    queue.take(any);
    expect(queue.push(claim("late", "late"))).to.equal(undefined);
  });

  it("counts bytes like places", () => {
    const queue = new FairQueue<Claim>();
    const megabytes = 2 ** 22;
    const one = fill(queue, () => claim("p", "1", megabytes));
    expect(one).to.be.within(2, 16);
    expect(queue.push(claim("p", "1", 1))).to.equal(
      "expected at most 16777216 bytes of one tenant for one plugin to wait for a thread of plugins",
    );
    expect(fill(queue, () => claim("q", "2", megabytes))).to.equal(one);
  });

  it("stays in order when more come and go than it remembers", () => {
    const queue = new FairQueue<Claim>();
    queue.push(claim("p", "waits"));
    for (let n = 0; n < 3_000; n++) {
      queue.push(claim(`plugin ${n}`, "1"));
      queue.take(({ tenant }) => tenant !== "waits");
    }
    queue.push(claim("new", "1"));
    expect(queue.take(any)?.tenant).to.equal("waits");
  });
});
