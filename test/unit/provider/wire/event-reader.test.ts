import { expect } from "chai";
import { createParser } from "eventsource-parser";
import fc from "fast-check";
import { GatewayError } from "../../../../core/action/error.ts";
import { EventReader, type WireEvent } from "../../../../core/provider/wire/event-reader.ts";
import { cutBytes, cuts } from "../../../support/chunk.ts";
import { growthOf, maxGrowth } from "../../../support/duration.ts";

function read(chunks: readonly Uint8Array[], reader: EventReader = new EventReader()): readonly WireEvent[] {
  return [...chunks.flatMap((chunk) => reader.push(chunk)), ...reader.end()];
}

function readText(text: string): readonly Omit<WireEvent, "raw">[] {
  return read([Buffer.from(text)]).map(({ raw: _, ...event }) => event);
}

function fault(chunks: readonly Uint8Array[], reader?: EventReader): string {
  try {
    read(chunks, reader);
  } catch (error) {
    if (error instanceof GatewayError) return error.message;
    throw error;
  }
  return "read";
}

/** Streams of lines that matter, with every end of line there is. */
const line = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 12 }).map((text) => `data: ${text.replace(/[\r\n]/g, "")}`),
  fc.constantFrom(
    "data",
    "data:",
    "data:  two",
    "event: ping",
    "event:",
    "id: 7",
    ": a comment",
    "retry: 5",
    "",
    "",
    "odd: x",
  ),
);
const stream = fc
  .array(fc.tuple(line, fc.constantFrom("\n", "\r\n", "\r")), { maxLength: 30 })
  .map((lines) => `${lines.map(([text, end]) => text + end).join("")}\n: end\n\n`);

describe("EventReader", () => {
  it("keeps every byte of the stream, however it is cut", () => {
    fc.assert(
      fc.property(stream, cuts, (text, places) => {
        const bytes = Buffer.from(text);
        const events = read(cutBytes(bytes, places));
        expect(Buffer.concat(events.map(({ raw }) => raw)).toString()).to.equal(text);
      }),
    );
  });

  it("reads the same events as the parser of the MCP clients, however the stream is cut", () => {
    fc.assert(
      fc.property(stream, cuts, (text, places) => {
        const expected: { event: string | undefined; data: string }[] = [];
        const parser = createParser({ onEvent: ({ event, data }) => expected.push({ event, data }) });
        parser.feed(text);
        const events = read(cutBytes(Buffer.from(text), places));
        expect(events.filter(hasData).map(({ event, data }) => ({ event, data }))).to.deep.equal(expected);
      }),
    );
  });

  it("gives each event at the last byte of its blank line, which a feed that comes later may be", () => {
    const reader = new EventReader();
    expect(reader.push(Buffer.from("data: z\r\n\r\n")).map(({ raw }) => raw.length)).to.deep.equal([11]);
    expect(reader.push(Buffer.from("data: a\r\n\r"))).to.have.length(0);
    expect(reader.push(Buffer.from("\ndata: b\n")).map(({ raw }) => raw.length)).to.deep.equal([11]);
    expect(reader.push(Buffer.from("\ndata: c\r\r")).map(({ raw }) => raw.length)).to.deep.equal([9]);
    expect(reader.end().map(({ data }) => data)).to.deep.equal(["c"]);
  });

  it("tells what is beside event and data, because it reaches the client too", () => {
    expect(readText(": note\nid: 1\nevent: e\ndata: x\n\n: alive\n\n")).to.deep.equal([
      { event: "e", data: "x", rest: ": note\nid: 1" },
      { data: "", rest: ": alive", keepAlive: true },
    ]);
    expect(readText("\ufeffdata: x\n\n")).to.deep.equal([{ data: "x" }]);
  });

  it("does not take an event without data for silence: clients read its name", () => {
    expect(readText("event: error\n\n")).to.deep.equal([{ event: "error", data: "" }]);
  });

  it("refuses a stream that ends inside an event, but not one that ends in silence", () => {
    expect(fault([Buffer.from("data: x\n")])).to.equal(
      "invalid response from provider: the stream ended inside an event",
    );
    expect(fault([Buffer.from("data: x\n\n\n: bye")])).to.equal("read");
  });

  it("refuses invalid UTF-8, and no character that is cut", () => {
    expect(fault([Uint8Array.of(0x64, 0x61, 0x74, 0x61, 0x3a, 0xc3, 0x28, 0x0a, 0x0a)])).to.contain("expected UTF-8");
    const bytes = Buffer.from("data: 🦊é\n\n");
    const single = [...bytes].map((byte) => Uint8Array.of(byte));
    expect(read(single).map(({ data }) => data)).to.deep.equal(["🦊é"]);
  });

  describe("when it is not trusted", () => {
    it("reads an event of exactly the bound, and refuses one byte more", () => {
      const event = (length: number): Buffer => Buffer.from(`data: ${"x".repeat(length - 8)}\n\n`);
      expect(read([event(100), event(100)], new EventReader(100))).to.have.length(2);
      expect(fault([event(101)], new EventReader(100))).to.contain("expected an event of at most 100 bytes, got more");
    });

    it("refuses endless blank lines and endless comments alike", () => {
      expect(fault([Buffer.alloc(101, "\n")], new EventReader(100))).to.contain("at most 100 bytes");
      expect(fault([Buffer.alloc(101, ":")], new EventReader(100))).to.contain("at most 100 bytes");
    });

    it("reads 256 KiB that come one byte at a time without copying them each time", async () => {
      const event = (length: number): Buffer => Buffer.from(`data: ${"x".repeat(length - 8)}\n\n`);
      const readSingly = (bytes: Buffer): number => {
        const reader = new EventReader();
        let events = 0;
        for (let at = 0; at < bytes.length; at++) events += reader.push(bytes.subarray(at, at + 1)).length;
        return events;
      };
      expect(readSingly(event(256 * 1024))).to.equal(1);
      expect(await growthOf(event, readSingly, 64 * 1024)).to.be.below(maxGrowth);
    });
  });
});

function hasData(event: WireEvent): boolean {
  return event.keepAlive !== true && /^data/m.test(Buffer.from(event.raw).toString().replaceAll("\r", "\n"));
}
