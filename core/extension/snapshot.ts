const pageBytes = 65_536;

/** The state of an instance before its first call: the pages that are not all 0, and the globals that can change. */
export class Snapshot {
  readonly #globals: readonly { readonly name: string; readonly value: number | bigint }[];
  readonly #pages: readonly { readonly at: number; readonly bytes: Uint8Array }[];
  readonly #length: number;

  constructor(memory: WebAssembly.Memory | undefined, globals: ReadonlyMap<string, WebAssembly.Global>) {
    const bytes = new Uint8Array(memory?.buffer ?? new ArrayBuffer(0));
    this.#length = bytes.length;
    this.#pages = pagesOf(bytes);
    this.#globals = Array.from(globals, ([name, { value }]) => ({ name, value }));
  }

  /** Puts an instance back. False where its memory has grown since: such an instance has to be dropped. */
  restore(memory: WebAssembly.Memory | undefined, globals: ReadonlyMap<string, WebAssembly.Global>): boolean {
    for (const { name, value } of this.#globals) {
      const global = globals.get(name);
      if (global !== undefined) global.value = value;
    }
    const bytes = new Uint8Array(memory?.buffer ?? new ArrayBuffer(0));
    if (bytes.length > this.#length) return false;
    bytes.fill(0);
    for (const page of this.#pages) bytes.set(page.bytes, page.at);
    return true;
  }
}

function pagesOf(bytes: Uint8Array): { at: number; bytes: Uint8Array }[] {
  const pages: { at: number; bytes: Uint8Array }[] = [];
  for (let at = 0; at < bytes.length; at += pageBytes) {
    const page = bytes.subarray(at, at + pageBytes);
    if (page.some((byte) => byte !== 0)) pages.push({ at, bytes: page.slice() });
  }
  return pages;
}
