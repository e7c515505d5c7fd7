/** A signal as those read it that only listen: an `AbortSignal`, or a `Cancellation`. */
export interface CancelSignal {
  readonly aborted: boolean;
  /** The reason of the abort; undefined before it. */
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void, options: { readonly once: true }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/**
 * The cancellation of one request. Nearly every request ends without one, so this holds what an `AbortController` holds in
 * three fields, and makes an `AbortSignal` only for those who need one.
 */
export class Cancellation implements CancelSignal {
  /** Changed by `abort` alone. */
  aborted = false;
  #reason: unknown;
  #listeners: Set<() => void> | undefined;
  #controller: AbortController | undefined;

  get reason(): unknown {
    return this.#reason;
  }

  /** A signal that aborts with this, or has. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.aborted) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** Calls every listener, once; a second abort does nothing. */
  abort(reason: Error): void {
    if (this.aborted) return;
    this.aborted = true;
    this.#reason = reason;
    const listeners = this.#listeners ?? [];
    this.#listeners = undefined;
    for (const listener of listeners) listener();
    this.#controller?.abort(reason);
  }

  addEventListener(_: "abort", listener: () => void): void {
    if (this.aborted) return;
    this.#listeners ??= new Set();
    this.#listeners.add(listener);
  }

  removeEventListener(_: "abort", listener: () => void): void {
    this.#listeners?.delete(listener);
  }
}
