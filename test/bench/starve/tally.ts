/** Answers of one kind: with the same status and the same words, whatever words with digits are in them. */
interface Kind {
  count: number;
  readonly example: string;
}

/** Counts answers by kind. */
export class Tally {
  readonly #kinds = new Map<string, Kind>();

  /** `words`: the error or the refusal that came, or nothing. */
  add(status: number | string, words = ""): void {
    const text = words.replaceAll(/\s+/g, " ").slice(0, 240);
    const name = `${status} ${text.replaceAll(/\S*\d\S*/g, "N")}`;
    const kind = this.#kinds.get(name);
    if (kind === undefined) this.#kinds.set(name, { count: 1, example: `${status} ${text}`.trim() });
    else kind.count++;
  }

  /** Lines such as `412 × 200`, the most frequent kind first, at most `max` of them. */
  lines(max: number): readonly string[] {
    const kinds = [...this.#kinds.values()].sort((a, b) => b.count - a.count);
    return kinds.slice(0, max).map(({ count, example }) => `${count} × ${example}`);
  }
}

interface McpAnswer {
  readonly result?: { readonly isError?: boolean; readonly content?: readonly { readonly text?: string }[] };
  readonly error?: { readonly message: string };
  readonly detail?: string;
}

/** The words of an answer that refuses: of a JSON-RPC error, of a tool's error, of a problem; none where it does not. */
export function refusalIn(text: string): string | undefined {
  try {
    const { result, error, detail } = JSON.parse(text) as McpAnswer;
    return error?.message ?? detail ?? (result?.isError === true ? (result.content?.[0]?.text ?? "error") : undefined);
  } catch {
    return text.slice(0, 240);
  }
}
