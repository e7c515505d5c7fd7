import { realpath } from "node:fs/promises";
import { basename, dirname, join, sep } from "node:path";
import { sha256Hex } from "../../action/canonical-json.ts";
import { GatewayError } from "../../action/error.ts";
import { makeFolder } from "../../store/folder.ts";
import { type EvidenceStore, recordKey } from "../record/key-space.ts";
import { readFirstKept } from "../tree/pruned-prefix.ts";
import type { ChainHead } from "./chain-walk.ts";
import { HighWaterFile, type Mark } from "./high-water.ts";

/** A chain as a start found it. */
interface FoundChain {
  readonly tenant: string;
  /** Undefined where the data folder has none. */
  readonly id: string | undefined;
  readonly head: ChainHead;
}

/**
 * Marks of the chains outside the data folder: they are raised with every record about an approval before anything runs by it, at a
 * start and at a stop. So a data folder that is put back as it was before is found to be older, and no approval is used again.
 *
 * INVARIANT: a chain that a start finds without a mark gets none before `adopt`: what its approvals were, nobody can say until then.
 */
export class OuterMark {
  readonly #path: string;
  readonly #file: HighWaterFile;
  /** Tenants whose chain was there before its mark. */
  readonly #unmarked = new Set<string>();
  /** The last write: two at once would take the same page. */
  #writing: Promise<void> = Promise.resolve();

  private constructor(path: string, file: HighWaterFile) {
    this.#path = path;
    this.#file = file;
  }

  /** Opens or creates the file. Throws STATE_UNUSABLE where it is damaged, cannot be written, or lies in the data folder. */
  static async open(path: string, dataDir: string): Promise<OuterMark> {
    await makeFolder(dirname(path)).catch((cause: NodeJS.ErrnoException) => {
      const text = `\`state.mark\`: the folder of \`${path}\` cannot be made (${cause.code}); set it to a file that the gateway can write`;
      throw new GatewayError("STATE_UNUSABLE", text, { cause });
    });
    if (await isInside(path, dataDir)) {
      const text = `expected \`state.mark\` outside \`data_dir\`, got \`${path}\`: both would be replaced at once`;
      throw new GatewayError("STATE_UNUSABLE", text);
    }
    return new OuterMark(path, await HighWaterFile.open(path));
  }

  get tenants(): Iterable<string> {
    return this.#file.marks.keys();
  }

  /** The tenants that wait for `adopt`. */
  get unmarked(): ReadonlySet<string> {
    return this.#unmarked;
  }

  /** Compares a chain with its mark. Returns why it must be refused; undefined where it is what it was, or longer. */
  async findContradiction(store: EvidenceStore, { tenant, id, head }: FoundChain): Promise<string | undefined> {
    const mark = this.#file.marks.get(tenant);
    if (mark === undefined) {
      if (id !== undefined) this.#unmarked.add(tenant);
      return undefined;
    }
    if (id === undefined) return this.#older(tenant, `expected record ${mark.seq}, got no chain`);
    if (id !== mark.chain) return this.#older(tenant, `expected chain \`${mark.chain}\`, got \`${id}\``);
    if (head.seq < mark.seq) return this.#older(tenant, `expected record ${mark.seq} or later, got ${head.seq}`);
    const text = await store.get(recordKey(tenant, mark.seq));
    const isPruned = text === undefined && mark.seq < (await readFirstKept(store, tenant));
    if (isPruned || (text !== undefined && sha256Hex(text) === mark.head)) return undefined;
    return this.#older(tenant, `expected another record ${mark.seq}`);
  }

  /** Raises marks. Durable when it resolves. */
  async advance(marks: readonly Mark[]): Promise<void> {
    const writing = this.#writing.catch(() => undefined).then(() => this.#advance(marks));
    this.#writing = writing;
    await writing;
  }

  async #advance(marks: readonly Mark[]): Promise<void> {
    const due = marks.filter(({ tenant, seq }) => {
      return seq > (this.#file.marks.get(tenant)?.seq ?? -1) && !this.#unmarked.has(tenant);
    });
    if (due.length > 0) await this.#file.advance(due);
  }

  /** Raises the marks of these chains, also of those that had none: no approval of theirs is live that was used. */
  async adopt(marks: readonly Mark[]): Promise<void> {
    for (const { tenant } of marks) this.#unmarked.delete(tenant);
    await this.advance(marks);
  }

  async close(): Promise<void> {
    await this.#writing.catch(() => undefined);
    await this.#file.close();
  }

  #older(tenant: string, found: string): string {
    return (
      `chain of tenant \`${tenant}\` is older than its mark in \`${this.#path}\`: ${found}. The data folder is an older copy, or its end ` +
      "is lost; approvals used since could be used again. Put the newest data folder back. To go on with this one, move the mark " +
      "aside: every pending and approved approval then ends"
    );
  }
}

/** Links are followed as far as the path exists, also where the file itself is one. */
export async function isInside(path: string, folder: string): Promise<boolean> {
  const own = realpath(path).catch(async () => join(await realPathOf(dirname(path)), basename(path)));
  const [file, outer] = await Promise.all([own, realPathOf(folder)]);
  return file.startsWith(`${outer}${sep}`);
}

async function realPathOf(path: string): Promise<string> {
  return realpath(path).catch(() => path);
}
