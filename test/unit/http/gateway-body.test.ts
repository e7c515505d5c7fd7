import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import type { Principal } from "../../../core/action/principal.ts";
import { FairShare } from "../../../core/http/fair-share.ts";
import { readGatewayBody } from "../../../core/http/request.ts";

const ann: Principal = { id: "ann", tenant: "acme", role: "viewer", keyId: "ann" };
const limits = {
  bytes: 4_194_304,
  json: { depth: 64, nodes: 10_000, stringLength: 4_194_304, reader: "exact" },
} as const;

/** A request whose body comes in sixty chunks of 64 KiB and a last byte. */
function comingBody(): IncomingMessage {
  const chunks = [`"${"a".repeat(65_535)}`, ...Array.from({ length: 59 }, () => "a".repeat(65_536)), '"'];
  const headers = { "content-type": "application/json", "content-length": String(60 * 65_536 + 1) };
  const body = Readable.from(chunks.map((chunk) => Buffer.from(chunk)));
  return Object.assign(body, { headers }) as unknown as IncomingMessage;
}

describe("readGatewayBody(request, limits, share, principal)", () => {
  let share: FairShare;
  beforeEach(() => {
    share = new FairShare({
      keyCallsPerMinute: 60,
      tenantCallsPerMinute: 60,
      keyCpuPercent: 25,
      tenantCpuPercent: 100,
      busyPercent: 0,
      loadPercent: () => 0,
      // Nobody pays for time: bytes alone are left.
      mainThread: { measure: () => ({ percent: 0, runningShare: 0 }) },
      elapsedMs: () => 1_000,
      onRefused: () => undefined,
    });
  });

  /** Reads bodies of so many bytes, one after another, and returns the reason why the last was refused. */
  async function refusalOf(count: number, bytes: number, text = "a".repeat(bytes - 2)): Promise<unknown> {
    for (let n = 0; n < count; n++) {
      const headers = { "content-type": "application/json" };
      const request = Object.assign(Readable.from([Buffer.from(`"${text}"`)]), { headers });
      try {
        await readGatewayBody(request as unknown as IncomingMessage, limits, share, ann);
      } catch (cause) {
        return { at: n, ...GatewayError.from(cause).data };
      }
    }
    return undefined;
  }

  it("reads one of 4 MB at once, and two; what they cost to keep is paid for before the next [S77]", async () => {
    expect(await refusalOf(4, 4_000_000)).to.deep.equal({ at: 3, reason: "key_cpu", retry_after_s: 1, limit: 25 });
  });

  it("refuses the next before it is parsed", async () => {
    await refusalOf(3, 4_000_000);
    expect(await refusalOf(1, 9_000, "\u0000")).to.include({ reason: "key_cpu" });
    expect(await refusalOf(1, 9_000, "\u0000".repeat(9_000))).to.include({ reason: "key_cpu" });
  });

  it("refuses one by its declared length, unread [S77]", async () => {
    await refusalOf(3, 4_000_000);
    let reads = 0;
    const body = new Readable({ read: () => reads++ });
    const headers = { "content-type": "application/json", "content-length": "4000000" };
    const request = Object.assign(body, { headers }) as unknown as IncomingMessage;
    const refusal = await readGatewayBody(request, limits, share, ann).then(
      () => undefined,
      (cause: unknown) => GatewayError.from(cause).data,
    );
    expect(refusal).to.include({ reason: "key_cpu" });
    expect(reads).to.equal(0);
  });

  it("reads little of a large one in one turn of the event loop [S76]", async () => {
    let [inTurn, most, isDone] = [0, 0, false];
    const turn = (): void => {
      inTurn = 0;
      if (!isDone) setImmediate(turn);
    };
    turn();
    const request = comingBody();
    const read = readGatewayBody(request, limits, share, ann);
    request.on("data", (chunk: Buffer) => {
      inTurn += chunk.length;
      most = Math.max(most, inTurn);
    });
    expect(await read).to.have.length(60 * 65_536 - 1);
    isDone = true;
    expect(most).to.be.at.most(2 * 65_536);
  });

  it("reads no more of a large one while work of its tenant goes on that has begun", async () => {
    const request = comingBody();
    let received = 0;
    const working = share.pause(ann);
    const read = readGatewayBody(request, limits, share, ann);
    request.on("data", (chunk: Buffer) => {
      received += chunk.length;
    });
    await working;
    for (let turn = 0; turn < 20; turn++) await share.pause(ann);
    expect(received).to.be.within(65_536, 2 * 65_536);
    await read;
  });

  it("takes nothing for the bytes of small ones", async () => {
    expect(await refusalOf(2_000, 8_000)).to.equal(undefined);
  });
});
