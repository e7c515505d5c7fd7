import { expect } from "chai";
import { SseReader } from "../../../core/upstream/sse-reader.ts";

/** The data of the events of a stream that comes in these chunks. */
function eventsOf(chunks: readonly Buffer[]): readonly string[] {
  const found: string[] = [];
  const reader = new SseReader(1_024, { onEvent: ({ data }) => found.push(data), onEnd: () => undefined });
  for (const chunk of chunks) reader.push(chunk);
  reader.end();
  return found;
}

describe("SseReader", () => {
  for (const [stream, events] of [
    ["data: a\n\ndata: b\r\n\r\n:", ["a", "b"]],
    ["data: a\r\rdata: b\r\r:", ["a", "b"]],
    ["data: \r\n\r-", [""]],
    ["\ufeffdata: é\r\rdata: 😀\n\n", ["é", "😀"]],
  ] as const) {
    it(`reads the same events of ${JSON.stringify(stream)}, wherever it is cut`, () => {
      const bytes = Buffer.from(stream);
      expect(eventsOf([bytes])).to.deep.equal(events);
      expect(eventsOf(Array.from(bytes, (byte) => Buffer.of(byte))), "byte by byte").to.deep.equal(events);
      for (let at = 0; at <= bytes.length; at++) {
        expect(eventsOf([bytes.subarray(0, at), bytes.subarray(at)]), `cut at ${at}`).to.deep.equal(events);
      }
    });
  }
});
