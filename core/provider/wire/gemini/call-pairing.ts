import type { Members } from "../member.ts";

/** Maximum calls of functions in one turn. */
const maxCalls = 128;

interface OpenCall {
  readonly id: string;
  readonly name: string;
  /** False where the gateway made the id. */
  readonly isGiven: boolean;
}

/**
 * Pairs calls of functions with their results, for an API that requires ids. A Gemini client may leave them out: then the
 * name of the function decides, and the order of its calls. The ids made here depend on nothing but the request, so that a
 * repeated request is the same.
 */
export class CallPairing {
  #made = 0;
  #open: OpenCall[] = [];

  /** Begins a turn of the model. */
  begin(): void {
    this.#open = [];
  }

  /** Returns the id of a call. Throws INVALID_REQUEST for an id that an open call has, and beyond `maxCalls`. */
  open(given: string | undefined, name: string, call: Members): string {
    const id = given ?? `call_gateway_${this.#made++}`;
    if (this.#open.some((each) => each.id === id)) throw call.expected("id", "another than that of an earlier call");
    if (this.#open.length >= maxCalls) throw call.expected("id", `one of at most ${maxCalls} calls in a turn`);
    this.#open.push({ id, name, isGiven: given !== undefined });
    return id;
  }

  /** Returns the id of the call that a result belongs to. Throws INVALID_REQUEST where there is none. */
  close(given: string | undefined, name: string, result: Members): string {
    const named = this.#open.filter((call) => call.name === name);
    const call = named.find(({ id }) => id === given) ?? named.find((each) => given === undefined || !each.isGiven);
    if (call === undefined) throw result.expected("name", "that of a call in the turn before, with its `id`");
    this.#open = this.#open.filter((each) => each !== call);
    return call.id;
  }
}
