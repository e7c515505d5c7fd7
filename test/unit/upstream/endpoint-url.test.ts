import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import { endpointUrl } from "../../../core/upstream/http-client.ts";
import { http } from "./fixture.ts";

describe("endpointUrl(config)", () => {
  it("reads an http or https address", () => {
    expect(endpointUrl(http("https://example.org/mcp?a=1")).href).to.equal("https://example.org/mcp?a=1");
  });

  const faulty: Readonly<Record<string, readonly [string, Record<string, string>, string]>> = {
    "another scheme": ["file:///etc/passwd", {}, "expected an http or https url"],
    "no address": ["example.org", {}, "expected an http or https url"],
    "credentials in the address": ["http://u:p@example.org/", {}, "expected credentials in a header, not in the url"],
    "a protocol header": [
      "http://example.org/",
      { "Mcp-Session-Id": "x" },
      "header `Mcp-Session-Id` belongs to the protocol",
    ],
    "a transport header": [
      "http://example.org/",
      { "Transfer-Encoding": "chunked" },
      "header `Transfer-Encoding` belongs to the protocol",
    ],
  };
  for (const [name, [url, headers, text]] of Object.entries(faulty)) {
    it(`refuses ${name}`, () => {
      expect(() => endpointUrl({ ...http(url), headers })).to.throw(
        GatewayError,
        `invalid configuration: upstream \`up\`: ${text}`,
      );
    });
  }
});
