import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { TicketWorld } from "../../support/ticket-world.ts";
import { type Finished, runGateway } from "../../unit/cli/run.ts";

const program = fileURLToPath(new URL("../../../core/cli/main.js", import.meta.url));

describe("gateway tickets", () => {
  let world: TicketWorld;

  before(async () => {
    world = await TicketWorld.start();
  });

  after(() => world.stop());

  function tickets(...args: string[]): Promise<Finished> {
    const env = { GATEWAY_API_KEY: world.key("rita"), GATEWAY_ADMIN_URL: world.gateway.adminUrl };
    return runGateway(["tickets", ...args], env);
  }

  const scope = ["--tool", "echo", "--target", "recorder", "other", "--capability", "execute"];

  it("issues a token that works, and that anybody with the public key can verify", async () => {
    const principal = world.principal("agent");
    const issued = await tickets("issue", "--principal", principal, ...scope, "--max-uses", "2", "--ttl", "60");
    expect(issued.code, issued.stderr).to.equal(0);
    expect(issued.stderr).to.match(/^gateway: issued tkt_[0-9a-f]{32} {2}live {2}0\/2 used {2}until /);
    const token = issued.stdout.trim();
    expect((await world.call(token)).isError).to.not.equal(true);
    const { public_key: key } = JSON.parse((await tickets("keys", "--json")).stdout) as { public_key: string };
    const verified = await verify(token, key);
    expect(verified.code).to.equal(0);
    const claims = JSON.parse(verified.stdout) as Record<string, unknown>;
    expect(claims).to.include({ sub: principal, max_uses: 2 });
    expect(claims)
      .to.deep.include({ targets: ["recorder", "other"] })
      .and.not.to.have.property("nonce");
    expect((await verify(`${token}A`, key)).code).to.equal(1);
  });

  it("lists and revokes", async () => {
    const issued = await tickets("issue", "--principal", world.principal("agent"), ...scope, "--json");
    const { token, ticket } = JSON.parse(issued.stdout) as { token: string; ticket: { id: string } };
    expect((await tickets("list")).stdout).to.include(`${ticket.id}  live   0/1 `);
    const revoked = await tickets("revoke", ticket.id, "--reason", "no need");
    expect([revoked.code, revoked.stdout]).to.deep.equal([0, ""]);
    expect(revoked.stderr).to.match(/^gateway: revoked tkt_/);
    expect(await world.refusal(token)).to.equal("revoked");
    const listed = (await tickets("list", "--json")).stdout.trim().split("\n");
    const found = listed
      .map((line) => JSON.parse(line) as { id: string; state: string })
      .find(({ id }) => id === ticket.id);
    expect(found).to.include({ state: "revoked" });
    const again = await tickets("revoke", ticket.id, "--reason", "no need");
    expect(again.code).to.equal(1);
    expect(again.stderr).to.match(/revoked already/);
  });
});

/** Asks no gateway: there is none in its environment. */
function verify(token: string, key: string): Promise<{ readonly code: number | null; readonly stdout: string }> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [program, "tickets", "verify", "--key", key], { env: {} });
    let stdout = "";
    child.stdout.on("data", (chunk: Buffer) => {
      stdout += String(chunk);
    });
    child.on("close", (code) => resolve({ code, stdout }));
    child.stdin.end(`${token}\n`);
  });
}
