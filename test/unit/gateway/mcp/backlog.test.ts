import { expect } from "chai";
import type { ServerMessage } from "../../../../core/gateway/mcp/reply.ts";
import { Backlog } from "../../../../core/gateway/mcp/session.ts";

const mebibyte = 1024 * 1024;

function note(name: string, bytes = 0): ServerMessage {
  return { jsonrpc: "2.0", method: "notifications/message", params: { data: "x".repeat(bytes), name } };
}

function question(id: string, bytes = 0): ServerMessage {
  return { jsonrpc: "2.0", id, method: "sampling/createMessage", params: { data: "x".repeat(bytes), name: id } };
}

function namesOf(backlog: Backlog): readonly unknown[] {
  return backlog.take().map(({ params }) => params?.name);
}

describe("Backlog.push(message)", () => {
  it("keeps the order, and gives each message once", () => {
    const backlog = new Backlog();
    for (const name of ["a", "b", "c"]) backlog.push(note(name));
    expect(namesOf(backlog)).to.deep.equal(["a", "b", "c"]);
    expect(namesOf(backlog)).to.deep.equal([]);
  });

  it("drops the oldest of more than 256 messages", () => {
    const backlog = new Backlog();
    for (let name = 0; name < 300; name++) backlog.push(note(String(name)));
    const names = namesOf(backlog);
    expect([names.length, names[0], names.at(-1)]).to.deep.equal([256, "44", "299"]);
  });

  it("drops the oldest of more than 4 MiB, and has room again once it was taken", () => {
    const backlog = new Backlog();
    for (let name = 0; name < 10; name++) backlog.push(note(String(name), mebibyte));
    expect(namesOf(backlog)).to.deep.equal(["7", "8", "9"]);
    for (let name = 0; name < 3; name++) backlog.push(note(String(name), mebibyte));
    expect(namesOf(backlog)).to.deep.equal(["0", "1", "2"]);
  });

  it("counts bytes, not characters", () => {
    const backlog = new Backlog();
    for (let name = 0; name < 4; name++) backlog.push(note(`${name}${"é".repeat(mebibyte / 2)}`));
    expect(namesOf(backlog).length).to.equal(3);
  });

  it("drops every notification before any question, and of questions the oldest", () => {
    const backlog = new Backlog();
    backlog.push(question("first", mebibyte));
    backlog.push(note("note", mebibyte));
    for (const id of ["second", "third"]) backlog.push(question(id, mebibyte));
    expect(namesOf(backlog)).to.deep.equal(["first", "second", "third"]);
    for (let id = 0; id < 5; id++) backlog.push(question(String(id), mebibyte));
    expect(namesOf(backlog)).to.deep.equal(["2", "3", "4"]);
  });

  it("loses a message over the bound, and nothing else for it", () => {
    const backlog = new Backlog();
    backlog.push(note("small"));
    backlog.push(note("huge", 4 * mebibyte));
    expect(namesOf(backlog)).to.deep.equal(["small"]);
  });
});
