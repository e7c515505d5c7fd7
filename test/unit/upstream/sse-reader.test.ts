import { expect } from "chai";
import { createParser } from "eventsource-parser";
import fc from "fast-check";
import { JoinedBytes } from "../../../core/action/joined-bytes.ts";
import { eventId, isMessage, type SseEvent, SseReader } from "../../../core/upstream/sse-reader.ts";
import { cutBytes, cuts } from "../../support/chunk.ts";

interface Read {
  readonly events: readonly {
    readonly event: string | undefined;
    readonly id: string | undefined;
    readonly data: string;
  }[];
  readonly retryMs: number | undefined;
}

function textOf({ data }: SseEvent): string {
  return (data instanceof JoinedBytes ? data.bytes : data).toString();
}

/** What a reader says of a stream that comes in these chunks. */
function read(chunks: readonly Uint8Array[], maxBytes = 1_024): Read {
  const events: Read["events"][number][] = [];
  let retryMs: number | undefined;
  const reader = new SseReader(maxBytes, {
    onEvent: (event) => events.push({ event: event.event, id: event.id, data: textOf(event) }),
    onEnd: (asked) => {
      retryMs = asked;
    },
  });
  for (const chunk of chunks) reader.push(chunk);
  reader.end();
  return { events, retryMs };
}

/** What the parser of the MCP clients says of it. */
function expectedOf(stream: string): Read {
  const events: Read["events"][number][] = [];
  let retryMs: number | undefined;
  const parser = createParser({
    onEvent: ({ event, id, data }) => events.push({ event, id, data }),
    onRetry: (asked) => {
      retryMs = asked;
    },
  });
  // It takes a return at the end of what it is fed for half a line end.
  parser.feed(`${stream}:`);
  return { events, retryMs };
}

const line = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 12 }).map((text) => `data: ${text.replace(/[\r\n]/g, "")}`),
  fc.constantFrom("data", "data:", "data:  two", "data : x", "event: message", "event:", "event", "id: 7", "id:", "id"),
  fc.constantFrom("id: \u0000", ": a comment", ":", "retry: 5", "retry: soon", "retry", "", "", "", "datum: x", "odd"),
  fc.constantFrom(`data: ${"d".repeat(80)}`, `event: ${"e".repeat(80)}`, "x".repeat(80)),
);
const stream = fc
  .tuple(
    fc.constantFrom("", "\ufeff"),
    fc.array(fc.tuple(line, fc.constantFrom("\n", "\r\n", "\r")), { maxLength: 30 }),
  )
  .map(([mark, lines]) => [mark, lines.map(([text, end]) => text + end).join("")] as const);

describe("SseReader", () => {
  it("reads the same events as the parser of the MCP clients, however the stream is cut", () => {
    fc.assert(
      fc.property(stream, cuts, ([mark, text], places) => {
        expect(read(cutBytes(Buffer.from(mark + text), places), 8_192)).to.deep.equal(expectedOf(text));
      }),
      { numRuns: 500 },
    );
  });

  for (const [stream, events] of [
    ["data: a\n\ndata: b\r\n\r\n:", ["a", "b"]],
    ["data: a\r\rdata: b\r\r:", ["a", "b"]],
    ["data: \r\n\r-", [""]],
    ["data: a\r\n\r\n\r\ndata: b\n\r", ["a", "b"]],
    ["\ufeffdata: é\r\rdata: 😀\n\n", ["é", "😀"]],
  ] as const) {
    it(`reads the same events of ${JSON.stringify(stream)}, wherever it is cut`, () => {
      const bytes = Buffer.from(stream);
      const found = (chunks: readonly Uint8Array[]): readonly string[] => read(chunks).events.map(({ data }) => data);
      expect(found([bytes])).to.deep.equal(events);
      expect(found(Array.from(bytes, (byte) => Buffer.of(byte))), "byte by byte").to.deep.equal(events);
      for (let at = 0; at <= bytes.length; at++) {
        expect(found([bytes.subarray(0, at), bytes.subarray(at)]), `cut at ${at}`).to.deep.equal(events);
      }
    });
  }

  it("leaves long data in the pieces it came in, and joins its lines by a line feed", () => {
    const lines = ["a", "b"].map((unit) => Buffer.from(unit.repeat(200_000)));
    const chunks = [
      Buffer.from("da"),
      Buffer.from("ta: "),
      lines[0],
      Buffer.from("\ndata:"),
      lines[1],
      Buffer.from("\n\n"),
    ];
    const events: SseEvent[] = [];
    const reader = new SseReader(1_000_000, { onEvent: (event) => events.push(event), onEnd: () => undefined });
    for (const chunk of chunks) reader.push(chunk as Buffer);
    const [event] = events;
    expect(events).to.have.length(1);
    expect(event?.data).to.be.instanceOf(JoinedBytes);
    expect(event && textOf(event)).to.equal(`${lines[0]}\n${lines[1]}`);
    const pieces = event?.data instanceof JoinedBytes ? event.data.pieces : [];
    expect(lines.every(({ buffer }) => pieces.some((piece) => piece.buffer === buffer))).to.equal(true);
  });

  for (const [what, text] of [
    ["an event", `data: ${"x".repeat(600)}\ndata: ${"x".repeat(600)}\n`],
    ["a line", "x".repeat(1_100)],
    ["comments without an event", ": and so on\n".repeat(200)],
  ] as const) {
    it(`refuses ${what} above its bound, whole or cut`, () => {
      const bytes = Buffer.from(text);
      for (const chunks of [[bytes], [bytes.subarray(0, 500), bytes.subarray(500)]]) {
        expect(() => read(chunks)).to.throw("expected an event of at most 1024 bytes, got more");
      }
    });
  }

  it("takes any number of events that are within the bound", () => {
    expect(
      read([Buffer.from(`data: ${"x".repeat(900)}\n\n`), Buffer.from("data: y\n\n".repeat(200))]).events,
    ).to.have.length(201);
  });
});

describe("an event", () => {
  it("has an id that a header can carry, or none", () => {
    const data = Buffer.from("x");
    expect(
      ["7", "a b", "é", "i".repeat(1_024), "i".repeat(1_025)].map((id) => eventId({ id, data })?.length),
    ).to.deep.equal([1, undefined, undefined, 1_024, undefined]);
  });

  it("is a message by its name and its data", () => {
    const of = (event: string | undefined, data: string): boolean => isMessage({ event, data: Buffer.from(data) });
    expect([of(undefined, "x"), of("message", "x"), of("other", "x"), of(undefined, "")]).to.deep.equal([
      true,
      true,
      false,
      false,
    ]);
  });
});
