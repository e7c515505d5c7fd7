import { asciiJson } from "../../action/json.ts";
import type { LiveChannel, LiveEvent, LiveRound } from "../../observe/live-audience.ts";

/** The part of a round that the subscribers of some channels get. */
interface RenderedRound {
  /** One text frame for each event. */
  readonly frames: Buffer;
  readonly eventCount: number;
  /** Events of these channels that were dropped before these. */
  readonly droppedCount: number;
}

const rounds = new WeakMap<LiveRound, Map<string, RenderedRound>>();
const frames = new WeakMap<LiveEvent, Buffer>();

/**
 * Renders what the subscribers of `channels` get of a round: once for all of them, so that a further subscriber costs one
 * write of the same bytes.
 */
export function renderRound(round: LiveRound, channels: readonly LiveChannel[]): RenderedRound {
  const byChannels = rounds.get(round) ?? new Map<string, RenderedRound>();
  rounds.set(round, byChannels);
  const key = channels.join();
  const known = byChannels.get(key);
  if (known !== undefined) return known;
  const events = round.events.filter(({ channel }) => channels.includes(channel));
  const rendered = {
    frames: Buffer.concat(events.map(frameOf)),
    eventCount: events.length,
    droppedCount: channels.reduce((sum, channel) => sum + round.dropped[channel], 0),
  };
  byChannels.set(key, rendered);
  return rendered;
}

/** Encodes a message of the gateway as JSON in printable ASCII. */
export function encodeMessage(type: string, id: string | null, payload: object): string {
  return asciiJson({ type, id, payload });
}

function frameOf(event: LiveEvent): Buffer {
  const known = frames.get(event);
  if (known !== undefined) return known;
  const { channel, time, data } = event;
  const frame = encodeTextFrame(encodeMessage("event", null, { channel, time, data }));
  frames.set(event, frame);
  return frame;
}

/** Encodes an ASCII text as one frame of a server (RFC 6455, section 5.2): final, text, not masked. */
export function encodeTextFrame(ascii: string): Buffer {
  const { length } = ascii;
  const header = length < 126 ? Buffer.alloc(2) : Buffer.alloc(length < 65_536 ? 4 : 10);
  header[0] = 0x81;
  header[1] = length < 126 ? length : length < 65_536 ? 126 : 127;
  if (header.length === 4) header.writeUInt16BE(length, 2);
  if (header.length === 10) header.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([header, Buffer.from(ascii, "latin1")]);
}
