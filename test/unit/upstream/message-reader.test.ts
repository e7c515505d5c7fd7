import { setImmediate } from "node:timers/promises";
import { expect } from "chai";
import type { JsonRpcMessage } from "../../../core/action/json-rpc.ts";
import { MessageReader } from "../../../core/upstream/message-reader.ts";
import { bounds } from "./fixture.ts";

const long = "x".repeat(700_000);

describe("MessageReader", () => {
  let events: string[];
  let reader: MessageReader;
  let pauses: number;
  beforeEach(() => {
    events = [];
    pauses = 0;
    reader = new MessageReader({
      bounds: { bytes: 1_000_000, json: bounds },
      source: { pause: () => void events.push("pause"), resume: () => void events.push("resume") },
      pause: async () => {
        pauses++;
        await setImmediate();
      },
    });
  });

  const use = ({ kind, message }: JsonRpcMessage): void => {
    const method = "method" in message ? message.method : "";
    if (method === "refuse") throw new Error("not this one");
    events.push(`${kind} ${method}`);
  };
  const note = (method: string, text = ""): string => JSON.stringify({ jsonrpc: "2.0", method, params: { text } });
  const read = (data: Buffer | string): void =>
    reader.read(data, use, (error) => void events.push(`${error.code} ${error.message}`));
  const settled = async (): Promise<void> => {
    while (events.at(-1) !== "resume") await setImmediate();
  };

  it("reads a short message at once", () => {
    read(note("a"));
    read(Buffer.from(note("b")));
    reader.follow(() => events.push("end"));
    expect(events).to.deep.equal(["notification a", "notification b", "end"]);
    expect(pauses).to.equal(0);
  });

  it("reads a long one over several turns, in which its source is paused, and what came meanwhile behind it [S76]", async () => {
    read(note("a", long));
    read(note("b"));
    read(Buffer.from(note("c", long)));
    read(note("d"));
    reader.follow(() => events.push("end"));
    expect(events).to.deep.equal(["pause"]);
    await settled();
    const read4 = ["notification a", "notification b", "pause", "notification c", "notification d", "end", "resume"];
    expect(events).to.deep.equal(["pause", ...read4]);
    // The one of bytes is decoded over two turns besides.
    expect(pauses).to.be.at.least(4 + 4 + 1);
    read(note("e"));
    expect(events.at(-1)).to.equal("notification e");
  });

  it("has what is wrong refused in its place, and goes on", async () => {
    read(note("refuse"));
    read(`${note("a", long).slice(0, -1)},"method":"b"}`);
    read("{");
    read(note("refuse"));
    read(note("c", "x".repeat(1_000_000)));
    read(note("d"));
    await settled();
    const invalid = "UPSTREAM_INVALID invalid response from upstream: ";
    expect(events.map((event) => event.replace(/ at offset .*/, ""))).to.deep.equal([
      "INTERNAL internal error: not this one",
      "pause",
      `${invalid}malformed JSON: duplicate key \`method\``,
      `${invalid}malformed JSON: unexpected character`,
      "INTERNAL internal error: not this one",
      "pause",
      `${invalid}expected a message of at most 1000000 bytes, got more`,
      "notification d",
      "resume",
    ]);
  });
});
