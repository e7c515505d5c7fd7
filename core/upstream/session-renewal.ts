import type { Flight } from "./flight.ts";
import type { Transport } from "./transport.ts";

/** Does the handshake again when the upstream lost the session, once for all requests that find out. */
export class SessionRenewal {
  readonly #transport: Transport;
  readonly #handshake: () => Promise<void>;
  readonly #onFault: (error: unknown) => void;
  #running: Promise<void> | undefined;

  constructor(transport: Transport, handshake: () => Promise<void>, onFault: (error: unknown) => void) {
    this.#transport = transport;
    this.#handshake = handshake;
    this.#onFault = onFault;
  }

  /** While it runs, requests wait: without a session they would be refused. */
  get running(): boolean {
    return this.#running !== undefined;
  }

  /** Starts, where it does not run yet; the flight that found out is sent again after it. */
  start(flight: Flight | undefined): void {
    this.#running ??= this.#run();
    if (flight === undefined) return;
    flight.resent = true;
    this.resend(flight);
  }

  /** Sends the flight's request when the session is there again. */
  resend(flight: Flight): void {
    void this.#running?.then(() => {
      if (!flight.settled) this.#transport.send(flight);
    });
  }

  async #run(): Promise<void> {
    this.#transport.forgetSession();
    try {
      await this.#handshake();
    } catch (error) {
      this.#onFault(error);
    } finally {
      this.#running = undefined;
    }
  }
}
