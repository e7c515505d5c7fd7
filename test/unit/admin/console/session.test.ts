import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { GatewayError } from "../../../../core/action/error.ts";
import type { Principal } from "../../../../core/action/principal.ts";
import { ConsoleCookie } from "../../../../core/admin/console/access/cookie.ts";
import { OneTimeLinks } from "../../../../core/admin/console/access/link.ts";
import { ConsoleSessions } from "../../../../core/admin/console/access/session.ts";

const minute = 60_000;
const hour = 60 * minute;

function holder(id: string): Principal {
  return { id, tenant: "acme", role: "operator", keyId: id };
}

/** The code of the error that is thrown. */
function codeOf(act: () => unknown): string {
  try {
    act();
  } catch (cause) {
    return GatewayError.from(cause).code;
  }
  return "none";
}

describe("ConsoleSessions", () => {
  let now: number;
  let sessions: ConsoleSessions;

  beforeEach(() => {
    now = 1_000;
    const clock = (): number => Date.UTC(2026, 0, 1) + now;
    sessions = new ConsoleSessions({ recentMs: 15 * minute, clock, elapsedMs: () => now, random: randomBytes });
  });
  afterEach(() => sessions.close());

  const open = (id = "otto"): ReturnType<ConsoleSessions["open"]> =>
    sessions.open({ by: "link", principal: holder(id), name: id, ageMs: 0 });

  it("ends one after 30 min without a request, and after 12 h in any case", () => {
    const [idle, busy] = [open(), open()];
    for (; now < 12 * hour; now += 29 * minute) {
      if (now < hour) expect(sessions.find(idle.cookie)).to.equal(idle.session);
      expect(sessions.find(busy.cookie)).to.equal(busy.session);
    }
    now = 12 * hour + 999;
    expect([sessions.find(idle.cookie), sessions.find(busy.cookie)?.by]).to.deep.equal([undefined, "link"]);
    now += 1;
    expect([sessions.find(busy.cookie), sessions.size]).to.deep.equal([undefined, 0]);
  });

  it("calls a sign-in recent for as long as it is told, and says until when", () => {
    const { session } = open();
    expect(sessions.times(session)).to.deep.equal({
      signed_in_at: "2026-01-01T00:00:01.000Z",
      recent_until: "2026-01-01T00:15:01.000Z",
      expires_at: "2026-01-01T00:30:01.000Z",
    });
    now += 15 * minute - 1;
    expect(sessions.isRecent(session)).to.equal(true);
    now += 1;
    expect(sessions.isRecent(session)).to.equal(false);
  });

  it("knows a session by its own cookie and its own token alone", () => {
    const [one, other] = [open(), open()];
    expect(one.cookie).to.match(/^[\w-]{43}$/);
    expect(new Set([one.cookie, other.cookie, one.session.csrf, other.session.csrf]).size).to.equal(4);
    for (const cookie of [undefined, "", one.session.csrf, one.cookie.slice(1)])
      expect(sessions.find(cookie)).to.equal(undefined);
    const { csrf } = one.session;
    for (const token of [undefined, "", [csrf], other.session.csrf, csrf.slice(1), `${csrf}A`])
      expect(sessions.isCsrfToken(one.session, token)).to.equal(false);
    expect(sessions.isCsrfToken(one.session, csrf)).to.equal(true);
  });

  it("has 64 of one principal: the one idle longest makes room", () => {
    const opened = Array.from({ length: 64 }, () => {
      now += 1;
      return open();
    });
    sessions.find(opened[0]?.cookie);
    const other = open("olga");
    now += 1;
    open();
    expect(sessions.size).to.equal(65);
    expect(sessions.find(opened[1]?.cookie)).to.equal(undefined);
    for (const { cookie } of [opened[0], opened[2], other].filter((each) => each !== undefined))
      expect(sessions.find(cookie)).not.to.equal(undefined);
  });

  it("has 1,024 in all: a further principal is refused until some are over", () => {
    for (let at = 0; at < 1_024; at++) open(`p${at % 32}`);
    expect(codeOf(() => open("late"))).to.equal("GATEWAY_BUSY");
    now += 30 * minute;
    open("late");
    expect(sessions.size).to.equal(1);
  });

  it("tells what hangs on a session of its end, once, whatever ends it", () => {
    const ended: string[] = [];
    const [out, revoked, idle, kept] = ["out", "revoked", "idle", "kept"].map((name) => {
      const opened = open(name);
      sessions.onEnd(opened.session, () => ended.push(name));
      return opened;
    });
    sessions.onEnd(kept?.session ?? open().session, () => ended.push("taken back"))();
    for (const each of [out, out]) if (each !== undefined) sessions.end(each.session);
    sessions.endRevoked(({ id }) => id !== "revoked");
    expect(ended).to.deep.equal(["out", "revoked"]);
    now += 29 * minute;
    sessions.find(kept?.cookie);
    now += 2 * minute;
    sessions.find(idle?.cookie);
    sessions.find(revoked?.cookie);
    expect(ended).to.deep.equal(["out", "revoked", "idle"]);
    sessions.close();
    expect(ended).to.deep.equal(["out", "revoked", "idle", "kept"]);
  });
});

describe("OneTimeLinks", () => {
  let now: number;
  let links: OneTimeLinks;

  beforeEach(() => {
    now = 0;
    links = new OneTimeLinks({ elapsedMs: () => now, random: randomBytes });
  });

  it("open once, and for 60 s", () => {
    const token = links.issue(holder("otto"));
    const late = links.issue(holder("otto"));
    now = 59_999;
    expect(links.redeem(token).id).to.equal("otto");
    expect(codeOf(() => links.redeem(token))).to.equal("LINK_INVALID");
    now = 60_000;
    expect(codeOf(() => links.redeem(late))).to.equal("LINK_INVALID");
  });

  it("are 16 at once: the oldest makes room", () => {
    const tokens = Array.from({ length: 17 }, () => links.issue(holder("otto")));
    expect(codeOf(() => links.redeem(String(tokens[0])))).to.equal("LINK_INVALID");
    for (const token of tokens.slice(1)) expect(links.redeem(token).id).to.equal("otto");
  });
});

describe("ConsoleCookie", () => {
  const plain = new ConsoleCookie("agw_console", false);
  const secure = new ConsoleCookie("agw_console", true);

  it("is bound to its host and to https where the page is there", () => {
    expect(plain.set("v")).to.equal("agw_console=v; Path=/; HttpOnly; SameSite=Strict");
    expect(secure.set("v")).to.equal("__Host-agw_console=v; Path=/; HttpOnly; SameSite=Strict; Secure");
    expect(secure.clear()).to.equal("__Host-agw_console=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict; Secure");
  });

  it("is read from among others, and not where there are two that differ", () => {
    const read = (...lines: readonly string[]): string | undefined =>
      plain.read(["host", "localhost", ...lines.flatMap((line) => ["Cookie", line])]);
    expect(read("a=b; agw_console=v; c=d")).to.equal("v");
    expect(read("a=b", "agw_console=v")).to.equal("v");
    expect(read("agw_console=v", "agw_console=v")).to.equal("v");
    for (const line of ["", "agw_console", "xagw_console=v", "__Host-agw_console=v", "agw_console=v; agw_console=w"])
      expect(read(line), line).to.equal(undefined);
    expect(secure.read(["cookie", "agw_console=v"])).to.equal(undefined);
  });
});
