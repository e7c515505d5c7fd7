import { expect } from "chai";
import type { ActionEnvelope } from "../../../core/action/envelope.ts";
import type { OutgoingRequest } from "../../../core/upstream/connection.ts";
import { spendOnRequest } from "../../../core/upstream/dispatch.ts";
import { makeAction } from "../../support/action.ts";
import { permit } from "../../support/permission.ts";
import { call, closeAll, hostile, openGroup, textOf } from "./fixture.ts";

function requestOf(action: ActionEnvelope): OutgoingRequest {
  return spendOnRequest(permit(action), action.target);
}

describe("spendOnRequest(permission, upstream)", () => {
  afterEach(closeAll);

  it("makes a tool call of a tool's name", () => {
    expect(requestOf(makeAction({ tool: "write", arguments: { a: 1 } }))).to.deep.equal({
      method: "tools/call",
      params: { name: "write", arguments: { a: 1 } },
    });
  });

  it("makes the request itself of a method's name", () => {
    expect(requestOf(makeAction({ tool: "resources/read", arguments: { uri: "x" } }))).to.deep.equal({
      method: "resources/read",
      params: { uri: "x" },
    });
  });

  it("lets no continuation take the place of what was judged", () => {
    const continuation = { name: "delete", arguments: { all: true }, uri: "y", requestState: "s" };
    expect(requestOf(makeAction({ tool: "write", arguments: {}, continuation })).params).to.deep.equal({
      requestState: "s",
      uri: "y",
      name: "write",
      arguments: {},
    });
    expect(
      requestOf(makeAction({ tool: "resources/read", arguments: { uri: "x" }, continuation })).params?.uri,
    ).to.equal("x");
  });

  it("refuses arguments that are no object", () => {
    expect(() => requestOf(makeAction({ arguments: [1] }))).to.throw(
      TypeError,
      "spendOnRequest: expected arguments to be an object",
    );
  });

  it("sends the judged action, once", async () => {
    const { group } = openGroup(hostile());
    const connection = await group.connection("up");
    const permission = permit(makeAction({ tool: "echo", target: "up", arguments: { a: 1 } }));
    expect(JSON.parse(textOf(await connection.request(spendOnRequest(permission, "up"))))).to.deep.equal({
      name: "echo",
      arguments: { a: 1 },
    });
    expect(() => spendOnRequest(permission, "up")).to.throw(TypeError, "this action was already dispatched");
  });

  it("sends nothing to another upstream than the judged one", async () => {
    const { group } = openGroup(hostile());
    const connection = await group.connection("up");
    const permission = permit(makeAction({ tool: "die", target: "other" }));
    expect(() => spendOnRequest(permission, connection.upstream)).to.throw(
      TypeError,
      "spendOnRequest: judged for `other`, got `up`",
    );
    expect(textOf(await call(group, "received"))).to.not.include("die");
  });
});
