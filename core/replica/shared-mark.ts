import type { HighWater, Mark } from "../evidence/chain/high-water.ts";
import type { LeaseClaim, ReplicaDatabase } from "./database.ts";

/** The marks of the chains in a table of their own: a database that lost entries and kept the marks is found out. */
export class SharedMarks implements HighWater {
  readonly #database: ReplicaDatabase;
  readonly #claim: LeaseClaim;
  readonly #marks: Map<string, Mark>;

  private constructor(database: ReplicaDatabase, claim: LeaseClaim, marks: readonly Mark[]) {
    this.#database = database;
    this.#claim = claim;
    this.#marks = new Map(marks.map((mark) => [mark.tenant, mark]));
  }

  static async open(database: ReplicaDatabase, claim: LeaseClaim): Promise<SharedMarks> {
    return new SharedMarks(database, claim, await database.readMarks());
  }

  get marks(): ReadonlyMap<string, Mark> {
    return this.#marks;
  }

  async advance(marks: Iterable<Mark>): Promise<void> {
    const last = [...new Map([...marks].map((mark) => [mark.tenant, mark])).values()];
    await this.#database.raiseMarks(this.#claim, last);
    for (const mark of last) this.#marks.set(mark.tenant, mark);
  }

  async close(): Promise<void> {}
}
