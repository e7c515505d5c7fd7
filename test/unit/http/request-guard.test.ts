import type { IncomingMessage } from "node:http";
import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import { RequestGuard } from "../../../core/http/request.ts";

describe("RequestGuard.checkOwnMachine(request)", () => {
  const guard = new RequestGuard(["agents.example"], []);

  /** The code of its refusal, or `passed`. */
  function check(host: string | undefined, remoteAddress: string | undefined): string {
    try {
      guard.checkOwnMachine({ headers: { host }, socket: { remoteAddress } } as unknown as IncomingMessage);
      return "passed";
    } catch (cause) {
      return GatewayError.from(cause).code;
    }
  }

  it("passes this machine under its own names", () => {
    for (const host of ["localhost:8082", "127.0.0.1:8082", "[::1]:8082", "LocalHost"]) {
      for (const address of ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
        expect(check(host, address), `${host} ${address}`).to.equal("passed");
    }
  });

  it("refuses other machines, and other names of this one, listed or not [S85]", () => {
    for (const address of ["10.0.0.7", "::ffff:10.0.0.7", "fe80::1", "127.0.0.1.example", "", undefined])
      expect(check("localhost:8082", address), address).to.equal("HOST_FORBIDDEN");
    for (const host of ["agents.example", "localhost.evil.example", "localhost@evil.example", "", undefined])
      expect(check(host, "127.0.0.1"), host).to.equal("HOST_FORBIDDEN");
  });
});
