import { execFileSync } from "node:child_process";
import { appendFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { SigningKey } from "../../../../core/action/signing-key.ts";
import { noteSigner, signNote } from "../../../../core/evidence/tree/checkpoint.ts";
import type { Witness } from "../../../../core/evidence/witness/witness.ts";
import { FileWitness } from "../../../../core/evidence/witness/witness-file.ts";
import { GitWitness } from "../../../../core/evidence/witness/witness-git.ts";
import { HttpWitness } from "../../../../core/evidence/witness/witness-http.ts";
import { egress } from "../../../support/egress.ts";
import { rejection } from "../../../support/ledger-world.ts";

const key = SigningKey.fromSeed(Buffer.alloc(32, 3));
const time = "2026-05-01T10:00:00.000Z";
const note = (words: string): string => signNote(`${words}\n`, [noteSigner("n", key)]);

/** Notes in memory behind real HTTP; `answer` replaces what it would say. */
class NoteServer {
  readonly #server: Server;
  readonly #notes = new Map<string, string>();
  readonly headers: (string | undefined)[] = [];
  answer: ((response: ServerResponse) => void) | undefined;

  constructor() {
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  async open(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/notes`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? "";
    const body = await text(request);
    this.headers.push(request.headers.authorization);
    if (this.answer !== undefined) return this.answer(response);
    if (request.method === "POST") this.#notes.set(path, body);
    const kept = this.#notes.get(path);
    response.statusCode = kept === undefined ? 404 : 200;
    response.end(request.method === "POST" ? "" : kept);
  }
}

let folder: string;
let server: NoteServer;
let url: string;

/** In each suite, because a hook outside of any runs for the tests of every file. */
function inOwnWorld(): void {
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "witness-"));
    server = new NoteServer();
    url = await server.open();
    execFileSync("git", ["init", "--quiet", "--bare", join(folder, "bare")]);
    execFileSync("git", ["init", "--quiet", join(folder, "work")]);
  });
  afterEach(async () => {
    server.close();
    await rm(folder, { recursive: true });
  });
}

const kinds: readonly (readonly [string, () => Witness])[] = [
  ["FileWitness", () => new FileWitness("w", join(folder, "not", "yet", "there"))],
  ["HttpWitness", () => new HttpWitness({ name: "w", url, headers: {}, egress })],
  ["GitWitness, bare", () => new GitWitness("w", join(folder, "bare"))],
  ["GitWitness, with a work tree", () => new GitWitness("w", join(folder, "work"))],
];
for (const [kind, open] of kinds) {
  describe(`${kind}: what every witness does`, () => {
    inOwnWorld();

    it("has nothing of a log at first, then its latest note", async () => {
      const witness = open();
      expect(await witness.latest("chain-A")).to.equal(undefined);
      for (const words of ["one", "two\nlines", "three"]) {
        await witness.append("chain-A", note(words), time);
        expect(await witness.latest("chain-A")).to.equal(note(words));
      }
    });

    it("keeps logs apart, and for whoever asks later", async () => {
      const witness = open();
      await witness.append("chain-A", note("a"), time);
      await witness.append("chain-B", note("b"), time);
      await witness.append("meta-_", note("m"), time);
      expect(await open().latest("chain-A")).to.equal(note("a"));
      expect(await open().latest("chain-B")).to.equal(note("b"));
      expect(await open().latest("meta-_")).to.equal(note("m"));
      expect(await open().latest("chain")).to.equal(undefined);
    });

    it("takes no log name that leads elsewhere", async () => {
      for (const log of ["", "..", "../a", "a/b", "a b", "a".repeat(81)]) {
        expect(await rejection(open().append(log, note("a"), time)), log).to.be.instanceOf(TypeError);
        expect(await rejection(open().latest(log)), log).to.be.instanceOf(TypeError);
      }
    });
  });
}

describe("FileWitness", () => {
  inOwnWorld();

  const path = (): string => join(folder, "chain.notes");

  it("only adds, with the time above each note", async () => {
    const witness = new FileWitness("w", folder);
    await witness.append("chain", note("a"), time);
    await witness.append("chain", note("b"), time);
    expect(await readFile(path(), "utf8")).to.equal(`# ${time}\n${note("a")}# ${time}\n${note("b")}`);
  });

  it("passes over a note that was cut off, and goes on behind it", async () => {
    const witness = new FileWitness("w", folder);
    await witness.append("chain", note("a"), time);
    await appendFile(path(), `# ${time}\n${note("b").slice(0, -9)}`);
    expect(await witness.latest("chain")).to.equal(note("a"));
    await witness.append("chain", note("c"), time);
    expect(await witness.latest("chain")).to.equal(note("c"));
  });

  it("rejects where its place is no folder", async () => {
    await writeFile(join(folder, "file"), "");
    const witness = new FileWitness("w", join(folder, "file"));
    expect(await rejection(witness.latest("chain"))).to.include({ code: "ENOTDIR" });
    expect(await rejection(witness.append("chain", note("a"), time))).to.include({ code: "EEXIST" });
  });

  it("finds the latest of many", async () => {
    const witness = new FileWitness("w", folder);
    await writeFile(path(), `# ${time}\n${note("x".repeat(900))}`.repeat(500));
    await witness.append("chain", note("last"), time);
    expect(await witness.latest("chain")).to.equal(note("last"));
  });
});

describe("HttpWitness", () => {
  inOwnWorld();

  const headers = { authorization: "Bearer s3cret" };
  const witness = (): HttpWitness => new HttpWitness({ name: "w", url, headers, egress });

  it("sends its headers", async () => {
    await witness().append("chain", note("a"));
    await witness().latest("chain");
    expect(server.headers).to.deep.equal(["Bearer s3cret", "Bearer s3cret"]);
  });

  const table: readonly [string, (response: ServerResponse) => void, string][] = [
    ["500", (response) => response.writeHead(500).end(), "expected 200 or 404 from the witness, got 500"],
    ["a redirect", (response) => response.writeHead(302, { location: url }).end(), "fetch failed"],
    ["nothing", (response) => response.destroy(), "fetch failed"],
    [
      "too much",
      (response) => response.end("x".repeat(70_000)),
      "expected a note of at most 65536 bytes from the witness, got more",
    ],
  ];
  for (const [what, answer, message] of table) {
    it(`rejects, and quotes no header, when the server answers ${what}`, async () => {
      server.answer = answer;
      const error = await rejection(witness().latest("chain"));
      expect(error.message).to.equal(message);
      expect(JSON.stringify([error.message, error.stack, error.cause])).to.not.include("s3cret");
    });
  }

  it("rejects when a note is not taken", async () => {
    server.answer = (response) => response.writeHead(507).end();
    expect((await rejection(witness().append("chain", note("a")))).message).to.equal(
      "expected 2xx from the witness, got 507",
    );
  });
});

describe("GitWitness", () => {
  inOwnWorld();

  it("makes a commit for each note, on a branch of its own, and leaves the work tree alone", async () => {
    const work = join(folder, "work");
    const witness = new GitWitness("w", work);
    await witness.append("chain", note("a"), time);
    await witness.append("chain", note("b"), time);
    await witness.append("other", note("c"), time);
    const git = (...args: string[]): string => execFileSync("git", ["-C", work, ...args], { encoding: "utf8" });
    expect(git("log", "--format=%s %cI", "evidence").trim().split("\n")).to.deep.equal([
      "Checkpoint of other 2026-05-01T10:00:00+00:00",
      "Checkpoint of chain 2026-05-01T10:00:00+00:00",
      "Checkpoint of chain 2026-05-01T10:00:00+00:00",
    ]);
    expect(git("show", "evidence~2:chain.note")).to.equal(note("a"));
    expect(git("ls-tree", "--name-only", "evidence").trim().split("\n")).to.deep.equal(["chain.note", "other.note"]);
    expect(git("status", "--porcelain")).to.equal("");
    expect(git("fsck", "--strict")).to.equal("");
  });

  it("is not led to another repository by the environment", async () => {
    process.env.GIT_DIR = join(folder, "bare");
    try {
      await new GitWitness("w", join(folder, "work")).append("chain", note("a"), time);
    } finally {
      delete process.env.GIT_DIR;
    }
    expect(await new GitWitness("w", join(folder, "bare")).latest("chain")).to.equal(undefined);
    expect(await new GitWitness("w", join(folder, "work")).latest("chain")).to.equal(note("a"));
  });

  it("rejects where there is no repository", async () => {
    const witness = new GitWitness("w", folder);
    expect((await rejection(witness.latest("chain"))).message).to.match(
      /^expected git to end with 0, got 128: fatal: /,
    );
    expect((await rejection(witness.append("chain", note("a"), time))).message).to.match(/got 128: fatal: /);
    expect((await rejection(new GitWitness("w", join(folder, "none")).latest("chain"))).message).to.match(/got 128/);
  });
});
